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
        (lambda workdir: (workdir / "config.json").unlink(), "without config.json"),
        (lambda workdir: shutil.rmtree(workdir / "answers"), "found no answers"),
        (lambda workdir: (workdir / "answers" / "clean-0.npz").unlink(), "without corruptions of a study"),
        (lambda workdir: (workdir / "answers" / "noc.hue-random.npz").write_bytes(b"PK"), "noc.hue-random.npz"),
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
