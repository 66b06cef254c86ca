"""Means over sets of corruptions: the published table of two halves of a benchmark, and the command."""

import json
import shutil
import sys
import types

import numpy as np
import pandas as pd
import pytest

from analysis.errors import joint, sets
from analysis.errors.reference import FROST, Conditions, of_corruption
from analysis.errors.sets import set_means
from analysis.overlap.score import split_by_overlap
from tests import processes
from tests.analysis import published
from tests.analysis.made_up import counted, write_answers
from tests.analysis.matrices import write_overlap
from tests.analysis.published import IMAGENET_C
from tests.refusing import refuses
from tests.tools.tables_test import IMAGENET, workdir
from tools import tables as command

# S1 Table 1: raw mean CE of Set1 and Set2, with the gains over Standard, and relative CE of border and obstruction.
S1_TABLE1 = {
    "standard": (81, 73, 0, 0, 53, 63),
    "sin_in": (71, 68, 10, 5, 56, 69),
    "augmix": (66, 65, 15, 8, 50, 63),
    "ant": (60, 68, 21, 5, 58, 71),
    "deepaugment": (59, 63, 22, 10, 60, 72),
}


def values(**models):
    """A frame of percent: {model: {corruption: number}}."""
    return pd.DataFrame.from_dict(models, orient="index")


def test_set_1_is_the_eight_corruptions_of_largest_mean_overlap():
    first, second = split_by_overlap(published.FIGURE3, IMAGENET_C, 8)
    assert first == published.SET1 and second == published.SET2


OF_MODELS = {
    ("standard", 0): {
        ("clean", 0): 90,
        ("noc/blur", 1): 60,
        ("noc/blur", 2): 40,
        ("noc/rain", 1): 50,
        ("noc/hue", 1): 80,
    },
    ("other", 0): {("noc/blur", 1): 75, ("noc/blur", 2): 65, ("noc/rain", 1): 70, ("noc/hue", 1): 75},
    ("other", 1): {("noc/blur", 1): 95, ("noc/blur", 2): 85},
}
COUNTS = [counted(*model, *cell, correct, 100) for model, of in OF_MODELS.items() for cell, correct in of.items()]
ICIP = {"noc/border": {"range": (10, 45)}, "noc/obstruction": {"range": (50, 120)}}


def robust_workdir(folder, errors, border=(10, 45)):
    """A workdir of one model called `standard`, as of imported weights: {corruption: error}."""
    cells = {(f"imagenet_c/{name}", level): errors[name] for name in IMAGENET_C for level in range(1, 6)}
    cells |= {(name, "random"): errors[name] for name in ICIP}
    options = ICIP | {"noc/border": {"range": border}, FROST: None}
    held = {name: of_corruption(name, IMAGENET, option) for name, option in options.items()}
    workdir(folder, errors["clean"], cells, held)


@pytest.fixture(scope="module")
def robust(tmp_path_factory):
    """AlexNet and the five models of S1 Table 1, with errors that give what is printed."""
    tmp_path = tmp_path_factory.mktemp("robust")
    alexnet = dict(zip(IMAGENET_C, published.ALEXNET_S4, strict=True))
    alexnet |= {"clean": published.ALEXNET_CLEAN, "noc/border": 0.670, "noc/obstruction": 0.597}
    robust_workdir(tmp_path / "alexnet", alexnet)
    for model, row in S1_TABLE1.items():
        raw = dict.fromkeys(published.SET1, row[0]) | dict.fromkeys(published.SET2, row[1])
        raw = dict(zip(IMAGENET_C, published.RESNET50_RAW, strict=True)) if model == "standard" else raw
        errors = {name: ce / 100 * alexnet[name] for name, ce in raw.items()} | {"clean": published.RESNET50_CLEAN}
        for name, ce in zip(ICIP, row[4:], strict=True):
            errors[name] = published.RESNET50_CLEAN + ce / 100 * (alexnet[name] - published.ALEXNET_CLEAN)
        robust_workdir(tmp_path / model, errors)
    names = [f"imagenet_c/{name}" for name in IMAGENET_C]
    write_overlap(tmp_path / "overlap.csv", names, published.FIGURE3)
    return tmp_path


def over_sets(folder, **changed):
    options = {
        "overlap": str(folder / "overlap.csv"), "size": 8, "standard": "standard", "measure": "CE",
        "reference": str(folder / "alexnet"), "mismatch": "refuse", "beside": list(ICIP), "out": None,
    }  # fmt: skip
    workdirs = sorted(path for path in folder.iterdir() if path.is_dir())
    return command.over_sets(workdirs, types.SimpleNamespace(**options | changed))


def test_the_command_prints_s1_table_1(robust, capsys):
    over_sets(robust)
    text = capsys.readouterr().out
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    head, rows = lines[0], {line[0]: list(map(float, line[1:])) for line in lines[1:]}
    columns = ["model", "Set1", "Set1 gain", "Set2", "Set2 gain"]
    assert head == [*columns, "noc/border, relative CE", "noc/obstruction, relative CE"] and "Raw CE" in text
    alexnet = rows.pop("alexnet")
    assert alexnet[::2] == pytest.approx([100, 100, 100], abs=0.05) and alexnet[5] == pytest.approx(100, abs=0.05)
    assert list(rows) == sorted(S1_TABLE1)
    for model, row in S1_TABLE1.items():
        first, gain1, second, gain2, border, obstruction = rows[model]
        assert (first, second, border, obstruction) == pytest.approx((row[0], row[1], *row[4:]), abs=0.55)
        assert (gain1, gain2) == pytest.approx(row[2:4], abs=0.55)


def test_set_means_are_raw_ce_and_not_relative_as_printed(robust):
    """Border and obstruction are relative; .341 is the error of ResNet-50 on obstruction of 50 to 120 pixels."""
    found = over_sets(robust, measure="relative_CE")["means"]["standard"]
    assert (found["Set1"]["mean"], found["Set2"]["mean"]) == pytest.approx((109, 101), abs=0.8)
    scored, _ = sets.by_corruption([joint.read(robust / "standard", "standard")], str(robust / "alexnet"))
    own = scored[scored.corruption == "noc/obstruction"].set_index("measure")["mean"]
    assert own["mean_error"] == pytest.approx(34.1, abs=0.05) and own["CE"] == pytest.approx(34.1 / 0.597, abs=0.1)


def test_relative_ce_of_other_ranges_is_refused(robust, tmp_path):
    robust = shutil.copytree(robust, tmp_path / "robust")
    with pytest.raises(ValueError, match=r"expected --reference=alexnet with errors of imagenet_c/frost under"):
        over_sets(robust, reference="")  # procedural
    shutil.rmtree(robust / "augmix")
    robust_workdir(robust / "augmix", dict.fromkeys((*IMAGENET_C, *ICIP, "clean"), 0.5), border=(9, 46))
    refuses(lambda: over_sets(robust), "here 9 to 46")
    asked = {"measure": "mean_error", "beside": [], "reference": ""}
    refuses(lambda: over_sets(robust, **asked), "under the same conditions")
    (note,) = over_sets(robust, mismatch="label", **asked)["notes"]
    assert note.startswith("augmix was measured under other conditions than alexnet: noc/border, severity range: ")


def test_models_of_one_name_are_told_apart_by_their_workdirs(robust, tmp_path):
    found = over_sets(robust, measure="mean_error", beside=[], out=str(tmp_path / "out.json"))
    assert list(found["means"]) == sorted([*S1_TABLE1, "alexnet"])
    assert sets.labelled([joint.read(robust / "alexnet", "alexnet")]) == {"alexnet": {"standard": "standard"}}


def test_the_command_prints_and_writes_the_table(tmp_path):
    names = ("noc/blur", "noc/rain", "noc/hue")
    write_overlap(tmp_path / "overlap.csv", names, np.array([[1, 0.6, 0], [0.6, 1, 0.1], [0, 0.1, 1]]))
    clean = [counted("other", seed, "clean", 0, 90, 100) for seed in (0, 1)]
    write_answers(tmp_path / "work", [*COUNTS, *clean], Conditions("shapes", 10, (32, 32, 3), "none", {}))
    flags = [str(tmp_path / "work"), "--table=sets", f"--overlap={tmp_path}/overlap.csv", "--size=2"]
    done = processes.run([sys.executable, "-m", "tools.tables", *flags])
    assert done.returncode == 0, done.stderr
    assert "Set1: noc/blur, noc/rain" in done.stdout and "| other | 25.0 | +25.0 | 25.0 | -5.0 |" in done.stdout
    content = json.loads((tmp_path / "set_means.json").read_text())
    assert content["means"]["other"]["Set1"] == {"mean": 25.0, "gain": 25.0} and len(content["inputs"]) == 1
    done = processes.run([sys.executable, "-m", "tools.tables", *flags[:3], "--size=3"])
    assert done.returncode == 1 and "size in 1..2" in done.stderr and "Traceback" not in done.stderr


def evaluated(folder, **models):
    """A workdir of models {name: {severity of noc/blur: correct answers to 100 images}}."""
    counts = [
        counted(model, 0, *cell, correct, 100)
        for model, of in models.items()
        for cell, correct in {("clean", 0): 90, **{("noc/blur", at): n for at, n in of.items()}}.items()
    ]
    write_answers(folder, counts, Conditions("shapes", 10, (32, 32, 3), "none", {}))
    return joint.read(folder, folder.name)


def test_a_corruption_at_other_levels_is_refused_or_said(tmp_path):
    works = [evaluated(tmp_path / "a", standard={1: 80}), evaluated(tmp_path / "b", robust={2: 40, 3: 30})]
    found = "expected noc/blur at the same levels of all models, found levels 1 of standard and 2, 3 of robust"
    with pytest.raises(ValueError, match=rf"{found}\n  evaluate the models at the same levels, or .*--mismatch=label"):
        sets.by_corruption(works)
    assert found in sets.by_corruption(works, mismatch="label")[1]
    assert sets.check_levels(works, ["noc/blur"], "label") == [found]
    alike = [works[0], evaluated(tmp_path / "c", robust={1: 70})]
    assert not sets.by_corruption(alike)[1] and not sets.check_levels(alike, ["noc/blur"], "refuse")


def test_levels_of_one_model_are_not_compared_with_random_severities_of_another(tmp_path):
    both = {"standard": {0.5: 95, "random": 60}, "robust": {"random": 60}}
    scored, _ = sets.by_corruption([evaluated(tmp_path / "work", **both)])
    means = set_means(sets.wide(scored, "mean_error"), {"blur": ["noc/blur"]})
    assert means.loc["robust", "blur gain"] == 0 and means.loc["standard", "blur"] == 40


def test_names_are_shown_as_they_are_in_the_text_of_set_means():
    values = pd.DataFrame({"my/<b>|": [30.0, 20.0]}, index=["standard", "a|<i>"])
    text = sets.set_means_text(set_means(values, {"set <u>": ["my/<b>|"]}), {"set <u>": ["my/<b>|"]}, {})
    assert not any(tag in text for tag in ("<b>", "<i>", "<u>")) and text.startswith("set &lt;u>: my/&lt;b>\\|\n")


def test_a_relative_ce_by_too_small_a_loss_is_undefined_and_not_absent():
    """A corruption whose reference hardly loses keeps its cell; one without reference is a dash."""
    line = {"model": "a", "benchmark": "b", "severities": "levels", "measure": "relative_CE"}
    line |= {"se": 1.0, "std": np.nan, "seeds": 1, "mismatch": "none", "frost": "none"}
    cells = [("noc/hue", 120.0, "r"), ("noc/rain", np.nan, "r"), ("noc/fog", np.nan, "none")]
    rows = [line | {"corruption": name, "mean": value, "reference": by} for name, value, by in cells]
    clean = line | {"benchmark": "clean", "corruption": "clean", "measure": "mean_error", "reference": "none"}
    table = pd.DataFrame([*rows, clean | {"mean": 20.0}])[list(sets.COLUMNS)]
    assert sets.undefined(table).tolist() == [False, True, False, False]
    chosen = sets.select(table, [], ["relative_CE"], [])
    ((title, text),) = sets.texts(chosen)
    assert "relative CE in percent by r" in title and text["rain"].tolist() == ["undefined"] and "fog" not in text
    refuses(lambda: sets.select(table[1:], [], ["relative_CE"], []), "name on a benchmark")
