"""tools.confidence: tables, pictures and the section of a report from a workdir, and from a folder of the library."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import corruptions
from analysis import answers
from analysis.report import inputs
from analysis.report.document import document
from corruptions.files import digest_of_file
from corruptions.scoring.folder import read_confidence
from runtime.files import mismatch
from tests.analysis.confidence.cells_test import NUMBER, answered
from tests.corruptions.scoring.confidence_test import probabilities
from tests.corruptions.write.datasets import IMAGES, LABELS
from tests.refusing import refuses
from tests.tools import report_studies
from tests.tools.report_pages import Page
from tools import confidence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workdir of two models under the four further corruptions of ImageNet-C."""
    folder = tmp_path_factory.mktemp("confidence") / "work"
    names = corruptions.names("imagenet_c_extra")
    conditions = [("clean", 0), *((name, k) for name in names for k in range(1, 6))]
    for place, (corruption, severity) in enumerate(conditions):
        of = {(model, 0): answered(10 * place + k)[0] for k, model in enumerate(("standard", "augmix"))}
        answers.write(folder / answers.FOLDER, of, answers.Record(corruption, severity, None, NUMBER, {}))
    return folder


@pytest.fixture(scope="module")
def made(folder):
    """The table and the folder of tools.confidence on it."""
    return confidence.run(folder, resamples=20)


def test_a_workdir_has_tables_pictures_and_a_section(folder, made):
    text, out = made
    assert out == folder / "confidence"
    cells, summary = pd.read_csv(out / "cells.csv"), pd.read_csv(out / "summary.csv", keep_default_na=False)
    assert len(cells) == 2 * 21
    part = cells[(cells.model == "augmix") & (cells.corruption != "clean")]
    of = summary.query("model == 'augmix' and benchmark == 'imagenet_c_extra' and severity == 'all'")
    of = of.set_index("measure")
    for name in ("nll", "ece", "accuracy", "auroc"):
        assert float(of["mean"][name]) == pytest.approx(part[name].mean())
    assert float(of["low"]["nll"]) < float(of["mean"]["nll"]) < float(of["high"]["nll"])
    assert of["low"]["ece"] == "nan" and (of.corruptions == 4).all()
    apart = pd.read_csv(out / "differences.csv").set_index(["model", "benchmark", "measure"])
    assert set(apart.against) == {"standard"}
    plain = cells[(cells.model == "standard") & (cells.corruption != "clean")]
    assert apart.difference["augmix", "imagenet_c_extra", "ece"] == pytest.approx(part.ece.mean() - plain.ece.mean())
    section = json.loads((out / "section.json").read_text())
    assert section["figures"] == [f"{kind}_imagenet_c_extra_levels" for kind in ("accuracy", "reliability", "risk")]
    assert not mismatch(section, inputs.SHAPES["section.json"])
    assert all((out / f"{name}.png").stat().st_size > 5000 for name in section["figures"])
    assert [row[:2] for row in section["rows"]] == [
        [model, images] for model in ("standard", "augmix") for images in ("clean", "imagenet_c_extra (levels)")
    ]
    assert f"{part.nll.mean():.4f}" in text and not (out / "disagreement.csv").exists()
    (out / "disagreement.csv").write_text("of an earlier command")
    confidence.run(folder, resamples=20)
    assert (out / "differences.csv").exists() and not (out / "disagreement.csv").exists()
    only = confidence.read(folder, ["standard"])
    assert {key[0] for key in only.read(("clean", 0))} == {"standard"}


def test_a_mean_over_corruptions_of_no_benchmark_says_which(tmp_path):
    for place, (corruption, severity) in enumerate([("clean", 0), ("noc/hue", "random"), ("imagenet_c/fog", 3)]):
        record = answers.Record(corruption, severity, None, NUMBER, {})
        answers.write(tmp_path / answers.FOLDER, {("standard", 0): answered(place)[0]}, record)
    text, out = confidence.run(tmp_path, resamples=0)
    said = "others (levels): the mean over corruptions of no benchmark that was evaluated completely: imagenet_c/fog."
    assert said in text and said in json.loads((out / "section.json").read_text())["facts"]
    assert "completely: noc/hue." in text and "| standard | others (random) |" in text


def test_seeds_are_compared_and_differences_are_to_the_model_asked_for(tmp_path):
    for place, cell in enumerate([("clean", 0), ("noc/hue", "random")]):
        keys = [("standard", 0), ("standard", 1), ("augmix", 0)]
        of = {key: answered(10 * place + k)[0] for k, key in enumerate(keys)}
        answers.write(tmp_path / answers.FOLDER, of, answers.Record(*cell, None, NUMBER, {}))
    _, out = confidence.run(tmp_path, against="augmix", resamples=20)
    rows = pd.read_csv(out / "disagreement.csv")
    first, second = (answered(k)[1].argmax(1) for k in (0, 1))
    assert list(rows.model) == ["standard"] * 2
    assert rows.disagreement[0] == pytest.approx((first != second).mean())
    assert set(pd.read_csv(out / "differences.csv").against) == {"augmix"}


def test_a_report_shows_the_section(made, tmp_path):
    study = tmp_path / "study"
    report_studies.write(study, ("noc/hue", "noc/rain", "noc/border"), number=60)
    assert f"python -m tools.confidence --workdir={study}" in Page(document(inputs.read(study))).text("main")
    shutil.copytree(made[1], study / "confidence")
    path = study / "confidence" / "section.json"
    section = json.loads(path.read_text())
    page = Page(document(inputs.read(study)))  # the section is of answers of another workdir
    assert f"{path} is of earlier answers: give the command" in page.text("section", id="warnings")
    assert not page.rows(**{"aria-label": "Confidence"})
    present = {f"answers/{file.name}": digest_of_file(file) for file in (study / "answers").glob("*.npz")}
    assert len(section["made_from"]) == 21 and present
    path.write_text(json.dumps(section | {"made_from": present}))
    page = document(inputs.read(study))
    assert re.findall(r'alt="Confidence: (\w+)"', page) == section["figures"] and len(section["figures"]) == 3
    (table,) = Page(page).rows(**{"aria-label": "Confidence"})
    assert [list(row) for row in table] == [section["header"], *section["rows"]]
    assert "tools.confidence" not in Page(page).text("section", id="further")


def test_a_folder_of_any_classifier_is_measured(tmp_path):
    of = {"corruptions": "noc/hue", "severity": "0,0.5", "batch_size": 12, "progress": False}
    of["outputs"] = "probabilities"
    counts = corruptions.evaluate(probabilities, IMAGES, LABELS, path=tmp_path / "mine", **of)
    cells = confidence.read(tmp_path / "mine").table()
    assert cells.accuracy.tolist() == [1 - count.error for count in counts]
    stored = read_confidence(tmp_path / "mine")
    np.testing.assert_allclose(cells.nll, [found.loss.mean() for found in stored.values()])


def test_bad_input_is_refused(folder, tmp_path):
    refuses(lambda: confidence.run(folder, tmp_path, models=["resnet"]), "resnet")
    refuses(lambda: confidence.run(tmp_path), "no answers", kind=FileNotFoundError)
    by_model = {("standard", 0): answered(0)[0].correct}
    answers.write(tmp_path / "old" / answers.FOLDER, by_model, answers.Record("clean", 0, None, NUMBER, {}))
    refuses(lambda: confidence.run(tmp_path / "old"), "none of sta")
