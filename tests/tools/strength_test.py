"""tools/strength.py: the page, the table beside it, and its refusals."""

import csv
import json

import pytest

from corruptions import registry
from evaluation.strength import Strength
from tools import strength

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
    with pytest.raises(ValueError, match=r"expected --out=FILE\.md, found"):
        strength.run(["imagenet_c"], "shapes", None, 32, 12, 0, tmp_path / "strength.csv")
    with pytest.raises(ValueError, match="unknown benchmark"):
        strength.run(["imagenet_d"], "shapes", None, 32, 12, 0, tmp_path / "strength.md")
    assert not list(tmp_path.iterdir())
