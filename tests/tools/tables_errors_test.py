"""tools.tables on workdirs made up here: what is bold, what is refused, what the three forms hold."""

import csv
import json
import types

import numpy as np
import pytest

import corruptions
from analysis import answers
from analysis.errors import joint, reference
from analysis.errors.reference import Conditions, of_corruption
from tests.analysis import made_up
from tools import tables as command

NOC = corruptions.names("imagenet_noc")
SHAPE, NUMBER = (32, 32, 3), 500


def conditions(**changed):
    given = {"dataset": "cifar10", "classes": 10, "image_shape": SHAPE, "preprocessing": "none"} | changed
    return Conditions(**given, corruptions={name: of_corruption(name, SHAPE) for name in NOC})


def write(folder, shift, seeds=(0,), held=None, shown="these"):
    """A workdir of a model that errs more by `shift`; hard images are the same in all of them."""
    folder.mkdir()
    hard = np.random.default_rng(0).normal(size=NUMBER)
    for k, (name, severity) in enumerate([("clean", 0), *((name, "random") for name in NOC)]):
        by_model = {}
        for seed in seeds:
            noise = np.random.default_rng((k, seed)).normal(size=NUMBER)
            by_model["standard", seed] = hard + 0.3 * noise < 1 - shift - 0.1 * k
        about = made_up.about(held or conditions(), name)
        record = answers.Record(name, severity, None, NUMBER, {"images": shown}, about)
        answers.write(folder / "answers", by_model, record)
    (folder / "evaluation.json").write_text(json.dumps({"provenance": {"device": "a device"}}))
    return folder


def run(folders, **changed):
    given = {
        "reference": "", "mismatch": "refuse", "measures": list(joint.MEASURED), "benchmarks": [], "models": [],
        "out": None, "write_reference": None, "by": "benchmark", "printed": False,
    }  # fmt: skip
    return command.errors(folders, types.SimpleNamespace(**given | changed))


def test_the_best_is_bold_in_all_three_forms(tmp_path, capsys):
    folders = [
        write(tmp_path / "first", 0.5),
        write(tmp_path / "second", 0.0, seeds=(0, 1)),
        write(tmp_path / "third", 0.7),
    ]
    found = run(folders, out=tmp_path / "out")
    assert found.columns == (("clean", "none", "mean_error"), ("imagenet_noc", "random", "mean_error"))
    assert found.best[found.columns[1]] == "second:standard"
    text = (tmp_path / "out" / "table.md").read_text()
    assert text.strip() in capsys.readouterr().out
    (row,) = [line for line in text.splitlines() if line.startswith("| second:standard")]
    summary = found.cells["second:standard", found.columns[1]]
    assert f"**{summary.mean:.1f} ± " in row and f"({summary.std:.2g})**" in row
    assert text.count("**") == 2 * len(found.best) and "Holm" in text and "a device" in text and "cifar10" in text
    rows = list(csv.DictReader((tmp_path / "out" / "table.csv").read_text().splitlines()))
    assert [r["model"] for r in rows if r["best"] == "1" and r["benchmark"] == "imagenet_noc"] == ["second:standard"]
    latex = (tmp_path / "out" / "table.tex").read_text()
    assert latex.count(r"\textbf{") == len(found.best) and r"imagenet\_noc" not in latex and r"$\pm$" in latex
    assert latex.count("{") == latex.count("}") and "ImageNet-NOC mean error" in latex


def test_what_is_no_better_is_not_bold_and_what_cannot_be_paired_is_said(tmp_path, capsys):
    same = run([write(tmp_path / "a", 0.0), write(tmp_path / "b", 0.001)])
    assert not same.best and "in no column" in capsys.readouterr().out
    found = run([tmp_path / "a", write(tmp_path / "c", 0.9, shown="others")])
    assert not found.best and "Not tested" in capsys.readouterr().out


def test_other_conditions_are_refused_or_labelled(tmp_path, capsys):
    first, other = write(tmp_path / "a", 0), write(tmp_path / "b", 0.1, held=conditions(dataset="shapes"))
    with pytest.raises(ValueError, match="dataset: cifar10, here shapes"):
        run([first, other])
    run([first, other], mismatch="label")
    assert "dataset: cifar10, here shapes" in capsys.readouterr().out
    with pytest.raises(FileNotFoundError, match="expected an evaluated workdir, found no answers"):
        run([tmp_path])
    with pytest.raises(ValueError, match="once"):
        run([first, first])
    with pytest.raises(ValueError, match="--measures of mean_error"):
        run([first], measures=["mce"])


def test_a_model_becomes_the_reference_of_another(tmp_path):
    first, second = write(tmp_path / "a", 0.3), write(tmp_path / "b", 0.0)
    run([first], write_reference=str(tmp_path / "reference.json"))
    for asked in (tmp_path / "reference.json", first):
        cell = run([second], reference=str(asked)).cells["standard", ("imagenet_noc", "random", "mCE")]
        errors = [
            {c.corruption: 1 - c.correct / c.total for c in answers.read(folder).counts} for folder in (first, second)
        ]
        assert cell.mean == pytest.approx(100 * np.mean([errors[1][name] / errors[0][name] for name in NOC]))
        assert cell.reference == "a:standard"
    assert reference.of_file(tmp_path / "reference.json") == reference.of_workdir(first)
