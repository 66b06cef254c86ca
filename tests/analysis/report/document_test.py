"""What the page of a study shows: of optional results, of pairs with a weak gain, of warnings."""

import json
import re

import numpy as np

from analysis.report import benchmark, inputs
from analysis.report.document import document
from runtime import artifacts
from tests.analysis.overlap.matrices import select_from
from tests.tools import report_studies
from tests.tools.report_pages import Page


def test_missing_results_say_what_to_run(workdir):
    for name in ("benchmark.json", "stability.json", "scores.csv"):
        (workdir / name).unlink()
    found = inputs.read(workdir)
    text = Page(document(found, benchmark.sweep(found), "No pictures.")).text("main")
    for command in (
        f"python select_noc.py --workdir={workdir}",
        f"python overlap.py --workdir={workdir}",
        f"python -m tools.calibrate --workdir={workdir}",
        "python -m tools.tables",
    ):
        assert command in text, command


def test_pairs_with_a_weak_gain_show_no_numbers(workdir):
    found = inputs.read(workdir)
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


def test_optional_results_are_shown(workdir):
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
    distances = {"noc/hue|1": np.array([[0.25], [1.0]]), "noc/rain|1": np.array([[0.75], [3.0]])}
    artifacts.write(workdir / "msd" / "schemes" / "augmix.npz", distances, {"scheme": "augmix"})
    (workdir / "msd" / "msd.csv").write_text("")
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
    assert "tools.calibrate" not in text and "tools.tables" not in text
    assert "5 minutes for 2 models" in page.text("section", id="study")


def test_coverage_is_shown_from_its_file_and_from_a_benchmark_of_earlier_code(workdir, further):
    assert f"python select_noc.py --workdir={workdir} --coverage=imagenet_c" in further(workdir)
    select_from(workdir / "overlap.csv", 0.1, coverage="noc/hue")
    assert "By noc/hue." in further(workdir)
    content = json.loads((workdir / "coverage.json").read_text())
    (workdir / "coverage.json").unlink()
    old = json.loads((workdir / "benchmark.json").read_text()) | {"coverage": content | {"benchmark": ["noc/rain"]}}
    (workdir / "benchmark.json").write_text(json.dumps(old))
    assert "By noc/rain." in further(workdir)


def test_other_revisions_and_pairs_near_the_threshold_are_warned_of(workdir):
    later = {"git_revision": "feed" * 10, "device": "1 x H200 (gpu)"}
    record = report_studies.PROVENANCE | {"git_revision": "beef" * 10 + "+changes", "continued": [later]}
    record["files"] = {"counts.csv": {"git_revision": "3f60e402a648"}}
    (workdir / "provenance.json").write_text(json.dumps(record))
    model = workdir / "models" / "standard" / "seed0"
    model.mkdir(parents=True)
    (model / "provenance.json").write_text(json.dumps({"git_revision": "cafe" * 10, "device": "2 x cpu (cpu)"}))
    found = inputs.read(workdir)
    text = Page(document(found, None, "No pictures.")).text("section", id="warnings")
    for part in (
        "uncommitted changes",
        "feedfeedfeed",
        "1 of 1 models were trained by another revision",
        "cafecafecafe",
        "1 x H200 (gpu)",
        "others wrote counts.csv (3f60e402a648)",
        "noc/quantization and noc/hue, both members, may overlap more than 0.1",
        "12 other sets have the same size",
        "imagenet_c/pixelate: training on it gives a gain of +0.0106",
    ):
        assert part in text, part


def test_large_studies_show_colours_and_keep_every_value(tmp_path):
    names = tuple(f"x/c{k}" for k in range(34))
    report_studies.write(tmp_path / "work", names, number=60, resamples=2)
    found = inputs.read(tmp_path / "work")
    page = Page(document(found, benchmark.sweep(found), "No pictures."))
    cells = page.cells("Overlap matrix")
    assert len(cells) == 34**2 and page.all("table", class_="matrix")[0][1]["data-detail"] == "colours"
    assert all(e[2] for e in cells)
