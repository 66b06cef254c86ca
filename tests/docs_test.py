"""What the documents promise: sizes, links, commands and flags that exist."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.pages import FENCE, HOWTO, LINK, PAGES, PROGRAMS, ROOT, check_command, commands, source_of, text_of


def words(text):
    """Words a reader sees: of a link its text alone."""
    return LINK.sub(lambda link: link["text"], text).replace("|", " ").split()


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 900


def test_status_rows_are_short_and_have_evidence():
    section = (ROOT / "README.md").read_text().split("## Status")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 8
    for row in rows:
        assert len(words(row)) <= 15, row
        assert LINK.search(row.split("|")[-2]), row


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_exist(page):
    text = FENCE.sub("", page.read_text())
    for link in LINK.finditer(text):
        target = link["target"].partition("#")[0]
        if target and not re.match(r"[a-z]+:", target) and not made_by_the_site(page.parent / target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def made_by_the_site(path):
    return path.resolve() == ROOT / "docs/reference/list.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page):
    rooms = "|".join(path.name for path in ROOT.iterdir() if path.is_dir())
    for name in re.findall(rf"`((?:{rooms})/[\w/.-]+\.\w+)`", page.read_text()):
        assert (ROOT / name).exists() or made_by_the_site(ROOT / name), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES + PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_flags_exist(page):
    for command in commands(text_of(page)):
        check_command(command, page)


def test_recipes_have_ten_lines_at_most():
    for page in HOWTO:
        for block in FENCE.finditer(page.read_text()):
            assert len(block["body"].splitlines()) <= 10, f"{page.name}: {block['body']}"


def test_howto_names_every_command():
    shown = {source_of(command) for page in HOWTO for command in commands(page.read_text())}
    for source in [*ROOT.glob("*.py"), *(p for p in (ROOT / "tools").glob("[a-z]*.py"))]:
        assert source in shown, f"docs/howto/ does not show {source.relative_to(ROOT)}"


def test_a_broken_link_fails_the_site(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in ("docs", "build") and not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs/install.md"
    page.write_text(page.read_text() + "\n[nowhere](howto/index.md#no-such-task) [gone](../tests/no_such_test.py)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no-such-task" in done.stderr and "no_such_test" in done.stderr
    assert done.stderr.count("WARNING -") == 2, done.stderr
