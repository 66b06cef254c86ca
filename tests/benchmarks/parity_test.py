"""The parity report: references for every corruption, measures that see a wrong pixel, Markdown that says it all."""

import contextlib
import json

import numpy as np

import corruptions
from benchmarks.parity import measures, report
from tests.processes import ROOT
from tests.reference.imagenet_c import expected as references
from tests.reference.photographs import photographs

RECORD = {"command": "c", "revision": "r", "versions": {"jax": "1"}, "machine": "m"}


def test_differences_are_of_levels_and_per_cent():
    expected = np.zeros((2, 10, 10), np.uint8)
    found = expected.copy()
    found[0, 0, :3] = (1, 255, 2)
    assert measures.difference(found, expected) == [255, 1.5]


def test_pixels_agree_with_the_reference_and_a_wrong_one_is_seen(monkeypatch):
    for name in ("imagenet_c/gaussian_noise", "imagenet_c/pixelate"):
        rows = measures.pixels([name], "cifar")[name]
        assert len(rows) == 5 and all(largest <= 1 and share < 0.1 for largest, share in rows)
    monkeypatch.setitem(references.REFERENCES, "pixelate", lambda image, *_: image)
    rows = measures.pixels(["imagenet_c/pixelate"], "cifar")["imagenet_c/pixelate"]
    assert all(largest > 1 and share > 1 for largest, share in rows)


def test_features_find_a_corruption_of_another_strength(tmp_path):
    clean = photographs(8, 32, 32)
    np.savez(tmp_path / "clean_32.npz", images=clean)
    name, own = "imagenet_c/gaussian_noise", measures.features
    figures = {}
    for severity in range(1, 6):
        key = measures.jax.random.key(severity)
        noisy = np.asarray(corruptions.corrupt(key, clean, name, severity))
        found = [own(x, y) for x, y in zip(clean, noisy, strict=True)]
        stacked = {one: np.array([np.atleast_1d(f[one]) for f in found]) for one in found[0]}
        figures[str(severity)] = {k: {"mean": v.mean(0).tolist(), "std": v.std(0).tolist()} for k, v in stacked.items()}
    figures["5"] = figures["1"]
    golden = {"images": 8, "draws_per_image": 1, "corruptions": {"gaussian_noise": figures}}
    (tmp_path / "imagenet_c_stats_32.json").write_text(json.dumps(golden))
    rows = measures.golden_features([name], tmp_path, 32)[name]
    assert all(worst < 4 and number == 24 for worst, _, _, _, number in rows[:4])
    assert rows[4][0] > 10 and rows[4][2] >= 3


def test_report_tells_measured_from_missing():
    pixels = {"cifar": {"imagenet_c/fog": [[0, 0.0], [1, 0.004], [1, 2.5], [255, 1e-5], [0, 0.0]]}}
    worst = [5.0, "diff_quantiles_1_25_50_75_99", 2, 3, 24]
    rows = {"pixels": pixels, "features": {"32": {"imagenet_c/fog": [[1.25, "mad", 0, 0, 24]] * 4 + [worst]}}}
    text = report.report({name: {"record": RECORD, "rows": row} for name, row in rows.items()})
    assert "| fog | 0 | 1 / 0.004 | 1 / 2.50 | 255 / 1e-05 | 0 |" in text
    assert "5 comparisons: 2 equal, 2 equal on 99.9 %" in text and "2.50 % (fog, by 1)" in text
    assert "1.2 mad" in text and "5.0 diff quantiles *2" in text and "3 of 120 features" in text
    assert text.count("Not measured.") == 2  # golden pixels and error rates
    assert text.count("revision r, jax 1; m") == 2


def test_rows_of_some_names_are_renewed_and_say_so():
    old, new = RECORD | {"revision": "old"}, RECORD | {"revision": "new", "command": "python again"}
    row = [[0, 0.0]] * 5
    before = {"record": old, "rows": {"cifar": {"imagenet_c/fog": row, "imagenet_c/snow": row}}}
    found = measures.renewed(
        "pixels",
        before,
        new,
        ["imagenet_c/snow"],
        lambda kept: {"cifar": kept["cifar"] | {"imagenet_c/snow": [[2, 1.0]] * 5}},
    )
    text = report.report({"pixels": found})
    assert "| fog | 0 | 0 |" in text and "| snow | 2 / 1.00 |" in text
    assert "revision old" in text and "Rows of snow: `python again`  \nrevision new" in text
    whole = measures.renewed("pixels", found, new, ["imagenet_c/snow", "imagenet_c/fog"], lambda kept: {"cifar": kept})
    assert whole == {"record": new, "rows": {"cifar": {}}}  # all names of another revision: nothing stays


def test_report_of_error_rates_names_departures():
    row = {"ours": [1.0] * 5, "peer": [2.0] * 5, "difference": -1.0, "se": 0.25}
    rows = {"clean": 6.5, "model": "net", "peer": "1.1.5", "number": 1000}
    rows["rows"] = {"imagenet_c/fog": row, "imagenet_c/contrast": row | {"difference": 0.5}}
    text = report.report({"errors": {"record": RECORD, "rows": rows}})
    assert "-1.00 ± 0.25 | fractal as large" in text and "+0.50 ± 0.25 |  |" in text
    assert "the 1 corruptions where the peer is the original: +0.50" in text


def test_the_page_follows_from_the_committed_numbers_and_keeps_its_other_sections():
    page, data = (ROOT / "docs/parity.md").read_text(), (ROOT / "benchmarks/results/parity.json").read_text()
    assert report.report(json.loads(data), page) == page and "## Other benchmarks" in page


def test_images_of_another_version_of_the_peer_are_made_again_and_of_other_processes_not(tmp_path, monkeypatch):
    made = []

    class Peer(contextlib.AbstractContextManager):
        def __init__(self, python, script, images):
            self.hello = {"version": version}

        def __exit__(self, *error):
            pass

        def spend(self, name, file):
            made.append(name)
            np.save(file, np.full(3, len(made)))

    monkeypatch.setattr(measures.timing, "Peer", Peer)
    numbers = []
    for version in (
        "peer 1.1, numpy 2.0, 2 processes",
        "peer 1.1, numpy 2.0, 8 processes",
        "peer 1.2, numpy 2.0, 8 processes",
    ):
        told, found = measures.peer_images("python", np.zeros((1, 4, 4, 3), np.uint8), ["imagenet_c/fog"], tmp_path)
        assert told == version
        numbers.append(found["imagenet_c/fog"][0])
    assert numbers == [1, 1, 2]
