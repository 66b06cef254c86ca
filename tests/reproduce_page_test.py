"""docs/reproduce.md: every row of the papers' tables, its command, and the evidence it names."""

import re
import shlex
import sys

import pytest

from corruptions.assets import FROM_FILES
from tests import processes
from tests.pages import FENCE, LINK, ROOT, check_command, commands
from training import study

REPRODUCE = ROOT / "docs/reproduce.md"
COLUMNS = ["in the paper", "what it shows", "command", "needs", "hours on one H200", "published", "ours", "kind"]
KINDS = ("arithmetic", "reproduction, small", "analysis", "neither yet")


def paper_rows():
    """The rows of the tables of papers in docs/reproduce.md, as {column: text}."""
    for table in re.findall(r"^\| in the paper .*\n(?:\|.*\n)+", REPRODUCE.read_text(), re.M):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        assert lines[0] == COLUMNS
        for cells in lines[2:]:
            assert len(cells) == len(COLUMNS), cells
            yield dict(zip(COLUMNS, cells, strict=True))


def labelled_commands():
    """{label: commands under its line `# label: ...`} in the blocks of docs/reproduce.md."""
    found = {}
    for block in FENCE.finditer(REPRODUCE.read_text()):
        for part in re.split(r"^(?=# [A-Z]\d+:)", block["body"], flags=re.M):
            if label := re.match(r"# ([A-Z]\d+):", part):
                assert label[1] not in found, f"{label[1]} is there twice"
                found[label[1]] = list(commands(f"```\n{part}```\n"))
    return found


def test_every_command_of_the_papers_page_exists():
    """Checks the blocks and, unlike on other pages, the running text and the tables."""
    text = REPRODUCE.read_text()
    in_text = [shlex.split(code) for code in re.findall(r"`python ([^`]+)`", FENCE.sub("", text))]
    in_blocks = list(commands(text))
    assert len(in_blocks) >= 20 and in_text
    for command in in_blocks + in_text:
        check_command(command, REPRODUCE)


def test_every_row_of_the_papers_page_has_a_command():
    labelled, used = labelled_commands(), set()
    rows = list(paper_rows())
    assert len(rows) >= 40
    for row in rows:
        labels = set(re.findall(r"\b[A-Z]\d+\b", row["command"]))
        assert labels, row
        assert labels <= {label for label, found in labelled.items() if found}, row
        assert all(row.values()), row
        used |= labels
    assert used == {label for label in labelled if label[0] != "F"}  # F labels belong to no paper: studies on two cores


def test_every_label_of_the_papers_page_has_a_command_of_smoke_size():
    """Except the command that trains nothing and reads one public table."""
    small = {label for line in re.findall(r"^# smoke (.*):", REPRODUCE.read_text(), re.M) for label in line.split()}
    assert small == set(labelled_commands()) - {"E1"}


def test_commands_of_one_workdir_have_the_same_settings():
    """A workdir of weights or of a training keeps its settings: a later command with others is refused.

    Files count too: photographs of frost, calibrated ranges and styles are options of corruptions.
    """
    free = set(study.STUDY_FREE) - set(FROM_FILES) - {"ranges", "style"} | {"model.checkpoint"}
    makers, seen = {"train.py", "overlap.py", "tools.scheme_study", "tools.cbar", "tools.weights"}, {}
    for command in commands(REPRODUCE.read_text().split("## At smoke size")[0]):
        given = dict(word[2:].partition("=")[::2] for word in command if word.startswith("--"))
        if not (makers.intersection(command[:2]) or "config.model.checkpoint" in given) or "workdir" not in given:
            continue
        settings = {
            name.removeprefix("config."): value
            for name, value in given.items()
            if name.startswith("config.")
            and not any(f"{name}.".startswith(f"config.{key}.") for key in (*free, "eval"))
        } | {"config": given["config"].replace("$m", "resnet50")}
        workdir = given["workdir"].replace("$m", "resnet50")
        assert seen.setdefault(workdir, settings) == settings, f"{workdir}: {command}"
    assert "runs/imagenet/resnet50" in seen and len(seen) > 20


def test_every_row_of_the_papers_page_tells_arithmetic_from_reproduction():
    for row in paper_rows():
        assert row["kind"].startswith(KINDS), row
        tests = re.findall(r"\[(test_\w+)\]\(\.\./([^)]+)\)", row["kind"])
        assert bool(tests) == ("arithmetic" in row["kind"]), row
        for name, path in tests:
            assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
        if row["kind"].startswith("reproduction"):
            assert LINK.search(row["ours"]), row


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_commands_of_smoke_size_go_through(tmp_path):
    """Part by part in order: later ones use what earlier ones wrote."""
    parts = re.findall(r"^# smoke ([^:\n]*):.*\n((?:(?!# |```).*\n)+)", REPRODUCE.read_text(), re.M)
    assert len(parts) > 10
    for labels, body in parts:
        for command in commands(f"```\n{body}```\n"):
            given = [word.replace("runs/smoke", str(tmp_path)) for word in command]
            done = processes.run([sys.executable, *given], timeout=1400)
            assert done.returncode == 0, f"{labels}: {command}: {done.stderr[-3000:]}"
