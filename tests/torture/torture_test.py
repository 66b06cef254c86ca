"""Two calls that stop at each of their changes of files, in this process; some commands that die, and what sees it."""

import json
import os
import shutil
import signal
import sys

import numpy as np
import pytest

import corruptions
from tests import processes
from tests.torture import __main__ as torture
from tests.torture import crashes, dying, outcomes
from tests.torture.scenarios import SCENARIOS, Place, Scenario

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), np.uint8)
LABELS = np.arange(12) % 3


class Died(BaseException):
    """The end of a call at a change of files; the changes that follow, such as those of its cleaning, do not happen either."""


def dies_at(folder, number, call):
    """Runs a call that stops before its n-th change of files; tells whether it came so far."""
    seen = []

    def tell(what):
        seen.append(what)
        if len(seen) >= number:
            raise Died(what)

    dying.watch(folder, tell)
    try:
        call()
    except Died:
        return True
    finally:
        dying.unwatch()
    return len(seen) >= number


def write(folder, layout):
    asked = {"corruptions": ("noc/contrast",), "severities": (0.5, 1), "layout": layout, "jpeg_quality": None}
    corruptions.write_dataset(folder / "out", (IMAGES, LABELS), **asked, progress=False)


def evaluate(folder):
    weights = np.random.default_rng(0).normal(size=(768, 3)).astype(np.float32)
    corruptions.evaluate(
        lambda images: np.asarray(images).reshape(len(images), -1) @ weights,
        *(IMAGES, LABELS),
        corruptions=("noc/contrast",),
        severity=(0.5, 1),
        path=folder / "out",
        progress=False,
    )


CALLS = {"evaluate": evaluate}
CALLS |= {
    f"write, {layout}": lambda folder, layout=layout: write(folder, layout)
    for layout in ("npy", "folders", "webdataset")
}


def ends_as_if_it_never_had(call, whole, folder, *numbers):
    """Stops a call at these changes, one after the other, and lets it end; tells whether all of them came."""
    folder.mkdir()
    stopped = [dies_at(folder, number, lambda: call(folder)) for number in numbers]
    call(folder)
    assert not outcomes.differences(outcomes.snapshot(folder), whole), numbers
    shutil.rmtree(folder)
    return all(stopped)


def ends(call, folder):
    """The files of a call that nothing stopped."""
    folder.mkdir()
    call(folder)
    return outcomes.snapshot(folder)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_stopped_at_any_change_of_files_ends_as_if_it_never_had(name, tmp_path):
    """The first changes, then every third."""
    call, number = CALLS[name], 1
    whole = ends(call, tmp_path / "whole")
    while ends_as_if_it_never_had(call, whole, tmp_path / "stopped", number):
        number += 1 if number < 8 else 3
    assert number > 12


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_stopped_twice_ends_as_if_it_never_had(name, tmp_path):
    """At every third change, and then, when it continues, at every third."""
    call, first, pairs = CALLS[name], 1, 0
    whole = ends(call, tmp_path / "whole")
    while ends_as_if_it_never_had(call, whole, tmp_path / "stopped", first):
        second = 1 + first % 4
        while ends_as_if_it_never_had(call, whole, tmp_path / "stopped", first, second):
            second, pairs = second + 3, pairs + 1
        first += 3
    assert pairs > 10


_CODE = "import os; os.chdir({!r}); open('a', 'w').write('1'); os.mkdir('b'); open('b/c', 'xb'); os.replace('a', 'b/c')"


@pytest.mark.parametrize(("number", "left"), [(1, ""), (2, "a"), (3, "ab"), (4, "abc"), (5, "bc")])
def test_a_process_dies_before_the_change_it_is_told(number, left, tmp_path):
    folder, log = tmp_path / "here", tmp_path / "log"
    folder.mkdir()
    words = [folder, number, log, "-c", _CODE.format(str(folder))]
    done = processes.run([sys.executable, "-m", "tests.torture.dying", *words])
    assert {path.name for path in folder.rglob("*")} == set(left), done.stderr
    assert done.returncode == (-signal.SIGKILL if number < 5 else 0)
    assert len(log.read_text().splitlines()) == min(number, 4)


def test_a_folder_removed_and_a_file_written_by_number_or_relative_path_are_changes(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("")
    seen = []
    dying.watch(tmp_path, seen.append)
    try:
        (tmp_path / "a").mkdir(exist_ok=True)  # changes nothing
        (tmp_path / "none").unlink(missing_ok=True)
        (tmp_path / "a" / "b" / "c").read_text()
        shutil.rmtree(tmp_path / "a")
        os.link(__file__, tmp_path / "link")
    finally:
        dying.unwatch()
    assert [line.split()[-1] for line in seen] == ["a/b/c", "a/b", "a", "link"]


_FAULTS = {  # what a command leaves -> what is found after a kill before its second change
    "open('{case}/a', 'w').write('1'); open('{case}/b', 'w')": "",
    "import os; n = len(os.listdir('{case}')); open('{case}/a', 'w').write(str(n)); open('{case}/b', 'w')": "a differs",
    "import os; a = f'{case}/.part-{os.getpid()}'; open(a, 'w'); os.rename(a, '{case}/b')": "left over",
    "open('{case}/a', 'x').write('1'); open('{case}/b', 'w')": "status 1",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "material").mkdir()
    return Place(tmp_path)


@pytest.mark.parametrize("code", _FAULTS)
def test_a_command_that_a_kill_harms_is_found(code, place, monkeypatch):
    monkeypatch.setitem(SCENARIOS, "faulty", Scenario(code=code))
    what, wrong = crashes.at_change(place, "faulty", 2)
    assert what and _FAULTS[code] in wrong and bool(wrong) == bool(_FAULTS[code])
    assert crashes.at_change(place, "faulty", 3) is None


def test_a_comparison_sees_one_byte_and_half_written_files_but_not_the_speed_of_a_run(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, speed in ((one, 10.5), (other, 7)):
        (folder / "checkpoints" / "10" / "meta").mkdir(parents=True)
        (folder / "checkpoints" / "10" / "meta" / "metadata").write_text('{"digest": "ab1"}')
        (folder / "checkpoints" / "10" / f"{speed}").write_text("a name by chance")
        line = {"step": 10, "loss": 2.5, "accuracy": 0.1, "images_per_second": speed}
        (folder / "metrics.jsonl").write_text(json.dumps(line))
        np.savez(folder / "subset.npz", mix=np.arange(3), about=json.dumps({"written": str(speed), "numbers": [1]}))
        (folder / "counts.csv").write_text("model,correct\nstandard,12\n")
        (folder / "provenance.json").write_text(json.dumps({"speed": speed}))
        (folder / "report.html").write_text(f"<p>Made on 2026-11-22 10:{speed:02.0f} UTC</p>")
    expected = outcomes.snapshot(one)
    assert not outcomes.differences(outcomes.snapshot(other), expected)
    (other / ".part-counts.csv.0a").write_text("half")
    (other / "counts.csv").write_text("model,correct\nstandard,13\n")
    (other / "checkpoints" / "10" / "meta" / "metadata").write_text('{"digest": "ab2"}')
    (other / "provenance.json").unlink()
    np.savez(other / "subset.npz", mix=np.arange(3), about=json.dumps({"written": "7", "numbers": [2]}))
    assert len(outcomes.differences(outcomes.snapshot(other), expected)) == 5


def test_a_torture_that_was_stopped_continues_and_a_case_is_replayed(tmp_path, monkeypatch, capsys):
    (tmp_path / "material").mkdir()
    words = ["--command=evaluate", f"--out={tmp_path}", "--kills=1"]
    ran = []

    def at_change(place, name, number):
        ran.append(number)
        if ran == [1, 2, 3]:
            raise KeyboardInterrupt
        return None if number > 4 else (f"change {number}", "wrong" if number == 2 else "")

    monkeypatch.setattr(Place, "facts", lambda *given: {"changes": 4})
    monkeypatch.setattr(crashes, "at_change", at_change)
    monkeypatch.setattr(crashes, "at_times", lambda *given: ("killed", ""))
    with pytest.raises(KeyboardInterrupt):
        torture.main(words)
    assert torture.main(words) == 1 and ran == [1, 2, 3, 3, 4]
    assert "| evaluate | 4 | 4 | 1 | change 2 |" in capsys.readouterr().out
    assert [torture.main([*words, f"--at={number}"]) for number in (2, 3, 9)] == [1, 0, 0]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("torture")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_command_dies_at_some_of_its_changes(name, out):
    """`make torture` takes them all."""
    assert torture.main([f"--command={name}", f"--out={out}", "--kills=1", "--sample=5"]) == 0
