"""The scripts in findings/, not run: their heads, their versions and the page that is made from them."""

import ast
import re
import subprocess

import pytest

from findings.page import FOLDER, LABELS, PAGE, head_of, outcomes, page
from tests.imports_test import OURS, SCRIPTS, names_in

FINDINGS = sorted(FOLDER.glob("*.sh"))
AGAIN = "write it again: python -m findings.page"


def test_the_page_is_made_from_the_scripts():
    assert PAGE.read_text() == page(), AGAIN


@pytest.mark.parametrize("script", FINDINGS, ids=lambda script: script.stem)
def test_a_head_names_the_versions_that_its_script_installs(script):
    text, head = script.read_text(), head_of(script)
    assert tuple(head) == LABELS and all(head.values())
    installed = set(re.findall(r"'[\w.-]+(?:\[\w+\])?==([\w.]+)'", text))
    named = {word.rstrip(".") for word in re.findall(r"(?<![\w.])\d+\.[\w.]+", head["With"])} - {"3.11"}
    assert named and named <= installed, f"{named - installed} is not installed"
    assert not re.findall(r"^\S+/pip install(?:(?!==).)*$", text.replace("\\\n", ""), re.M), "a package has no version"


@pytest.mark.parametrize("script", FINDINGS, ids=lambda script: script.stem)
def test_a_script_is_valid_and_runs_without_this_project(script):
    assert subprocess.run(["bash", "-n", script], capture_output=True).returncode == 0
    programs = re.findall(r"<<'EOF'\n(.*?)^EOF$", script.read_text(), re.M | re.S)
    assert programs
    for program in programs:
        imported = {name.partition(".")[0] for name in names_in(ast.parse(program))}
        assert not imported & (OURS | SCRIPTS)
        assert "assert " in program, "nothing fails when the package changes"


def test_every_guess_has_a_number_and_an_outcome():
    text = (FOLDER / "GUESSES.md").read_text()
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.M)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(outcomes(text)) == len(numbers)
