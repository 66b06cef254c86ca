"""tools.report: its numbers against the tables, its figures, what it shows of optional results, and
what it refuses.
"""

import io
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from analysis.distances.files import Distance, write_msd
from analysis.report import benchmark, inputs
from analysis.report.document import document
from tests.tools import report_studies
from tests.tools.report_pages import NAMES, Page
from tools import report

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("report") / "work"
    report_studies.write(workdir, NAMES)
    return report.run(workdir, samples=False)


def test_the_page_needs_nothing_from_outside(study):
    found = Page(study.read_text(encoding="utf-8"))
    addresses = [e[1][k] for e in found.found for k in ("src", "href") if k in e[1]]
    assert all(a.startswith(("#", "data:", "figures/")) for a in addresses) and addresses
    assert not re.search(r"url\(|@import|https?:", study.read_text(encoding="utf-8"))
    assert "default-src 'none'" in found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]


def test_figures_open_in_print_quality(study):
    folder = study.parent / "figures"
    assert {p.name for p in folder.iterdir()} == {
        f"{stem}.{kind}" for stem in ("overlap", "transfer", "balance", "sweep", "stability") for kind in ("png", "pdf")
    }
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1) and min(picture.size) > 500
            assert np.asarray(picture.convert("L")).std() > 5
    for path in folder.glob("*.pdf"):
        content = path.read_bytes()
        assert content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
        table = int(re.search(rb"startxref\s+(\d+)", content)[1])
        assert content[table:].startswith(b"xref") and b"/MediaBox" in content


def test_command_without_samples_needs_no_jax(study, tmp_path):
    workdir = shutil.copytree(study.parent, tmp_path / "work", ignore=shutil.ignore_patterns("report.html", "figures"))
    code = (
        "import sys; sys.argv = ['tools.report', *sys.argv[1:]]; import runpy\n"
        "try: runpy.run_module('tools.report', run_name='__main__')\n"
        "finally: print('jax' in sys.modules)"
    )
    out = tmp_path / "elsewhere" / "page.html"
    arguments = [f"--workdir={workdir}", f"--out={out}", "--nosamples"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False" and str(out) in done.stdout
    assert out.stat().st_size > 50_000 and (out.parent / "figures" / "overlap.pdf").exists()
    assert not (workdir / "report.html").exists()


def test_samples_follow_the_range_of_the_study():
    from analysis.report import samples

    config = {
        "dataset": {"image_size": 32},
        "train": {"corruption_options": {"imagenet_c/contrast": {"range": [1.5, 4.0]}}},
    }
    found = samples.draw(("noc/border", "imagenet_c/contrast", "x/unknown"), config)
    assert set(found.images) == {"noc/border", "imagenet_c/contrast"}
    assert found.columns["noc/border"] == ("0", "0.25", "0.5", "0.75", "1")
    for pictures in found.pictures.values():
        change = np.abs(pictures.astype(int) - pictures[0]).mean((1, 2, 3))
        assert len(pictures) == 6 and np.all(np.diff(change) > 0)
    published = samples.draw(("imagenet_c/contrast",), {})
    assert published.columns["imagenet_c/contrast"] == ("1", "2", "3", "4", "5")
    spread = [p.std() for p in (published.pictures["imagenet_c/contrast"], found.pictures["imagenet_c/contrast"])]
    assert spread[0] != spread[1]
    np.testing.assert_allclose(  # level 4 is the severe end of the calibrated range
        found.pictures["imagenet_c/contrast"][5].astype(int), published.pictures["imagenet_c/contrast"][4], atol=1
    )
    assert all(Image.open(io.BytesIO(png)).size == (6 * 64 + 5 * 2, 64) for png in found.images.values())


def test_missing_results_say_what_to_run(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    for name in ("benchmark.json", "stability.json", "scores.csv"):
        (workdir / name).unlink()
    found = inputs.read(workdir)
    text = Page(document(found, benchmark.sweep(found), "No pictures.")).text("main")
    for command in (
        f"python select_noc.py --overlap={workdir}/overlap.csv",
        f"python overlap.py --workdir={workdir}",
        f"python -m tools.calibrate --workdir={workdir}",
        "python -m tools.compare",
    ):
        assert command in text, command


def test_pairs_with_a_weak_gain_show_no_numbers(tmp_path):
    found = inputs.read(report_studies.smoke(tmp_path / "work"))
    weak = {name for name, flag in zip(found.names, found.overlap.flags) if flag == "weak"}
    assert 0 < len(weak) < len(found.names)
    page = Page(document(found, None, "No pictures."))
    for _, attributes, text in page.cells("Overlap matrix"):
        pair = set(attributes["title"].partition(":")[0].split(" and "))
        if len(pair) == 2:
            assert (text == "weak") == bool(pair & weak), (attributes, text)
            assert ("±" in text) == ("±" in attributes["title"]) == (not pair & weak)
    for _, attributes, text in page.cells("Directed transfer"):
        if ending := re.match(r"(?:T from .* \S|mean incoming transfer of) ([a-z_]+/[a-z_]+)", attributes["title"]):
            assert (text == "weak") == (ending[1] in weak), (attributes, text)


def test_optional_results_are_shown(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    entry = {
        "range": [0.1, 0.75],
        "unit": "fraction",
        "robustness": [0.951, 0.502],
        "robustness_se": [0.004, 0.009],
        "capped": [False, True],
        "monotone": True,
        "mean_robustness": 0.72,
        "mean_robustness_se": 0.01,
    }
    (workdir / "ranges.json").write_text(
        json.dumps({"corruptions": {"noc/hue": entry, "noc/border": {"range": [10, 45]}}})
    )
    (workdir / "timing.json").write_text(json.dumps({"training_seconds": {"standard|0": 100.0, "noc/hue|0": 200.0}}))
    comparison = {
        "first": "one", "second": "two", "threshold": 0.1, "training_seconds": None,
        "matrices": {
            "pairs": 66, "spearman": 0.81, "spearman_interval": [0.7, 0.9], "pearson": 0.85, "mean_difference": 0.06,
            "standardised": 1.4,
        },
        "benchmarks": [{"threshold": 0.1, "first": ["noc/hue"], "second": ["noc/hue"], "shared": ["noc/hue"], "jaccard": 1.0}],
    }  # fmt: skip
    (workdir / "comparison.json").write_text(json.dumps(comparison))
    (workdir / "msd").mkdir()
    distances = [("augmix", "noc/hue", 1, 0.25, 0.0, 1.0, 0.0), ("augmix", "noc/rain", 1, 0.75, 0.0, 3.0, 0.0)]
    write_msd(workdir / "msd" / "msd.csv", [Distance(*row) for row in distances])
    found = inputs.read(workdir)
    page = Page(document(found, None, "No pictures."))
    text = page.text("section", id="further")
    assert all(part in text for part in ("augmix", "0.500", "2.000", "noc/hue 0.250", "noc/rain 0.750"))
    assert "tools.msd" not in text
    assert (
        "given, not calibrated" in text
        and "0.951 ± 0.004" in text
        and "severe target out of reach" in text
        and "Spearman 0.81" in text
    )
    assert "tools.calibrate" not in text and "tools.compare" not in text
    assert "5 minutes for 2 models" in page.text("section", id="study")


def test_other_revisions_and_pairs_near_the_threshold_are_warned_of(tmp_path):
    workdir = report_studies.smoke(tmp_path / "work")
    later = {"git_revision": "feed" * 10, "device": "1 x H200 (gpu)"}
    record = report_studies.PROVENANCE | {"git_revision": "beef" * 10 + "+changes", "continued": [later]}
    (workdir / "provenance.json").write_text(json.dumps(record))
    model = workdir / "models" / "standard" / "seed0"
    model.mkdir(parents=True)
    (model / "provenance.json").write_text(json.dumps({"git_revision": "cafe" * 10, "device": "2 x cpu (cpu)"}))
    (workdir / "benchmark.json").write_text(
        (workdir / "benchmark.json").read_text().replace('overlap.csv": "', 'overlap.csv": "0')
    )
    found = inputs.read(workdir)
    text = Page(document(found, None, "No pictures.")).text("section", id="warnings")
    for part in (
        "uncommitted changes",
        "feedfeedfeed",
        "1 of 1 models were trained by another revision",
        "cafecafecafe",
        "1 x H200 (gpu)",
        "others wrote counts.csv (3f60e402a648)",
        "selected from another overlap.csv",
        "noc/quantization and noc/hue, both members, may overlap more than 0.1",
        "12 other sets have the same size",
        "too large for gains",
        "imagenet_c/pixelate: training on it gives a gain of +0.0106",
    ):
        assert part in text, part


def break_file(name, change):
    def broken(workdir):
        path = workdir / name
        path.write_text(change(path.read_text()))

    return broken


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda workdir: shutil.rmtree(workdir), "found no folder"),
        (
            lambda workdir: [(workdir / n).unlink() for n in ("counts.csv", "config.json")],
            "without config.json, counts.csv",
        ),
        (break_file("overlap.csv", lambda text: text[:-30]), "found the file cut off"),
        (
            break_file("overlap.csv", lambda text: text.replace("0.8482563628973593", "0.9")),
            "which follows from counts.csv",
        ),
        (
            break_file("overlap_long.csv", lambda text: text.replace("0.98724819", "0.88724819")),
            "overlap_long.csv: expected",
        ),
        (break_file("overlap_long.csv", lambda text: "\n".join(text.split("\n")[:-2]) + "\n"), "1 missing"),
        (
            break_file("counts.csv", lambda text: text.replace("standard,0,clean,0,7346,", "standard,0,clean,0,7345,")),
            "run overlap.py again",
        ),
        (break_file("counts.csv", lambda text: text.replace("noc/hue,0,noc/hue,random,6926,10000\n", "")), "lacks 1"),
        (break_file("config.json", lambda text: text[:-5]), "config.json: expected valid JSON"),
        (break_file("provenance.json", lambda text: "[]"), "expected a JSON object, found list"),
        (break_file("benchmark.json", lambda text: text.replace("noc/hue", "noc/who")), "found noc/who"),
        (break_file("stability.json", lambda text: "{}"), "stability.json: expected members"),
    ],
)
def test_broken_workdirs_are_refused_with_a_reason(tmp_path, damage, message):
    workdir = report_studies.smoke(tmp_path / "work")
    damage(workdir)
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        inputs.read(workdir)


def test_errors_of_the_command_are_one_clear_message(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tools.report", f"--workdir={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "tools.report: expected a workdir of overlap.py" in done.stderr


def test_a_corruption_without_gain_is_undefined_everywhere(tmp_path):
    names = ("x/a", "x/b", "x/c", "x/d")
    report_studies.write(tmp_path / "work", names, number=300, resamples=5, harmed=2)
    page = Page(report.run(tmp_path / "work", samples=False).read_text(encoding="utf-8"))
    titles = [e[1]["title"] for e in page.cells("Overlap matrix")]
    assert sum("undefined, training on one of them did not help" in title for title in titles) == 6
    assert "left out of the selection, without a defined overlap: x/c" in page.text("section", id="warnings")
    models = {row[0]: row[-1] for row in page.rows(class_="models")[0]}
    assert models["x/c"] == "no gain !" and models["x/a"] == ""
    assert not re.search(r"(?<![a-z])nan(?![a-z])", page.text("main").lower())


def test_large_studies_show_colours_and_keep_every_value(tmp_path):
    names = tuple(f"x/c{k}" for k in range(34))
    report_studies.write(tmp_path / "work", names, number=60, resamples=2)
    found = inputs.read(tmp_path / "work")
    page = Page(document(found, benchmark.sweep(found), "No pictures."))
    cells = page.cells("Overlap matrix")
    assert len(cells) == 34**2 and page.all("table", class_="matrix")[0][1]["data-detail"] == "colours"
    assert all(e[2] for e in cells)
