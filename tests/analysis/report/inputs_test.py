"""Workdirs that are broken: each is refused with the reason."""

import re
import shutil

import pytest

from analysis.report import inputs


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
def test_broken_workdirs_are_refused_with_a_reason(workdir, damage, message):
    damage(workdir)
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        inputs.read(workdir)
