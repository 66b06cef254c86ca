"""tools.weights, tools.strength and tools.exits: what they ask for, their tables, pages and refusals."""

import contextlib
import csv
import json
import types

import numpy as np
import pandas as pd
import pytest

from configs import imagenet
from corruptions.core import registry
from evaluation import packaged
from evaluation.strength import Strength
from models import costs
from tests.corruptions.comparing import refused
from tests.refusing import refuses
from tests.training import tiny
from tools import exits, strength, weights


def test_files_are_named_once():
    assert weights.named(["sin=a=b.pth.tar", "ANT3x3+SIN=c.pth"]) == {"sin": "a=b.pth.tar", "ANT3x3+SIN": "c.pth"}
    for given, said in (
        ([], "for each file, found none"),
        (["resnet50.pth"], "found 'resnet50.pth'"),
        (["a/b=c.pth"], "found 'a/b=c.pth'"),
        (["..=c.pth"], "found '..=c.pth'"),
        (["table=c.pth"], "not `table`"),
        (["a=b.pth", "a=c.pth"], "found a twice"),
        (["Net=b.pth", "net=c.pth"], "differ by more than capitals, .* found Net and net"),
        (["Table=c.pth"], "not `table`"),
    ):
        with pytest.raises(ValueError, match=said):
            weights.named(given)


def test_all_files_and_packages_are_imported_before_the_first_is_evaluated(tmp_path, monkeypatch):
    done, settings = [], {}

    @contextlib.contextmanager
    def imported(path, config):
        done.append(("imported", path.name, config.model.checkpoint))
        settings[path.name] = (config.model.name, config.model.dtype, config.dataset.image_size)
        yield

    monkeypatch.setattr(weights.trained_models, "open_workdir", imported)
    monkeypatch.setattr(weights.commands, "run", lambda config, path: done.append((path.name, config.model.checkpoint)))
    written = []
    table = types.SimpleNamespace(
        read_all=list, joint=lambda folders, **given: folders, markdown=str, write=lambda *given: written.append(given)
    )
    monkeypatch.setattr(weights, "joint", table)
    config = imagenet.get_config()
    monkeypatch.setattr(packaged, "find", lambda name: f"{name}.pth")
    weights.run(config, {"standard": "a.pth", "sin": "b.pth.tar"}, tmp_path, ["efficientnet-lite1"])
    files = [("standard", "a.pth"), ("sin", "b.pth.tar"), ("efficientnet-lite1", "efficientnet-lite1.pth")]
    assert done == [*(("imported", *file) for file in files), *files]
    assert written == [(tmp_path / "table", [tmp_path / name for name, _ in files])]
    assert settings["efficientnet-lite1"] == ("efficientnet_lite1", "float32", 240)
    assert settings["sin"] == ("resnet50", "float32", 224)
    assert not config.model.checkpoint and config.model.name == "resnet50"


LEVELS = {"imagenet_c/contrast": (1, 5), "imagenet_c/brightness": (2, 4)}


def test_page_and_csv_say_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "two", LEVELS)
    out = strength.run(["two"], "shapes", None, 32, 12, 3, tmp_path / "strength.md")
    text = out.read_text()
    with open(tmp_path / "strength.csv") as file:
        rows = [Strength(*row[1:]) for row in list(csv.reader(file))[1:]]
    origin = json.loads((tmp_path / "provenance.json").read_text())["files"]["strength.csv"]["origin"]
    assert [(row.corruption, int(row.severity)) for row in rows] == [(n, s) for n, both in LEVELS.items() for s in both]
    assert origin.startswith("12 test images of shapes, 32x32 pixels, seed 3; ") and origin in text
    assert "--benchmark=two \\\n    --dataset=shapes --size=32 --images=12 --seed=3 --out=strength.md\n" in text
    line = next(line for line in text.splitlines() if line.startswith("| imagenet_c/contrast"))
    assert line.count("±") == 2
    shown = [float(cell.split("±")[0]) for cell in line.split("|")[2:4]]
    assert shown == [pytest.approx(float(row.psnr), abs=0.051) for row in rows[:2]] and shown[0] > shown[1]


def test_named_members_alone_are_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "two", LEVELS)
    given = ("shapes", None, 32, 12, 3)
    whole = strength.run(["two"], *given, tmp_path / "whole.md").with_suffix(".csv").read_text().splitlines()
    out = strength.run(["two"], *given, tmp_path / "one.md", ["imagenet_c/brightness"])
    assert out.with_suffix(".csv").read_text().splitlines()[1:] == [line for line in whole if "brightness" in line]
    assert "contrast" not in out.read_text() and "--benchmark=two --names=imagenet_c/brightness " in out.read_text()
    with refused("names", "'imagenet_c/fog'"):
        strength.run(["two"], *given, tmp_path / "other.md", ["imagenet_c/fog"])


def test_severities_out_of_order_are_listed():
    def row(severity, psnr):
        return Strength("imagenet_c/fog", severity, 9, psnr, 0.1, psnr / 50, 0.01, 0.0)

    rows = [row(*pair) for pair in ((1, 30.0), (2, 31.0), (3, 31.0), (4, 29.0), (5, 29.5))]
    assert strength.exceptions("imagenet_c", rows).splitlines() == [
        "- imagenet_c/fog at 2, 5: milder than the severity before (higher PSNR)",
        "- imagenet_c/fog at 3: the same as the severity before",
    ]
    assert strength.exceptions("imagenet_c", rows[2:4]) == ""


def test_refusals(tmp_path):
    refuses(lambda: strength.run(["imagenet_c"], "shapes", None, 32, 12, 0, tmp_path / "strength.csv"), "--out=FILE.md")
    with refused("benchmark", "'imagenet_d'"):
        strength.run(["imagenet_d"], "shapes", None, 32, 12, 0, tmp_path / "strength.md")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_exits_are_counted_clean_and_corrupted(tmp_path, monkeypatch):
    config = tiny.config()
    del config.model.stem, config.model.widths  # of the small network
    config.model.name = "msdnet"
    config.model.update({"exits": 2, "step": 1, "base": 1})
    config.eval.corruptions, config.eval.severity = ("noc/border",), "random"
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    text = exits.run(config, workdir)
    alone = pd.read_csv(workdir / "exits.csv", dtype=str).to_numpy().tolist()
    up_to = costs.at_exits("msdnet", 32, 10, exits=2, step=1, base=1)
    assert [(r[2], r[3], r[4], int(r[5]), r[7]) for r in alone] == [
        (corruption, severity, str(number), cost, "70")
        for corruption, severity in (("clean", "0"), ("noc/border", "random"))
        for number, cost in enumerate(up_to, 1)
    ]
    adaptive = pd.read_csv(workdir / "adaptive.csv", dtype=str).to_numpy().tolist()
    assert len(adaptive) == 2 * len(exits.BUDGETS) and {r[7] for r in adaptive} == {"35"}
    means = [int(r[5]) for r in adaptive if r[2] == "clean"]
    assert means == sorted(means) and up_to[0] < np.mean(means) < up_to[1]
    assert text.count("\n| standard, 0 |") == 2 + len(exits.BUDGETS)
    monkeypatch.setattr("evaluation.correctness.of_exits", lambda *_: pytest.fail("answered again"))
    assert exits.run(config, workdir) == text
