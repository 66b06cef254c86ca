"""What the documents promise: sizes, links, commands and flags that exist, examples that run."""

import ast
import importlib.util
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import data
import models

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
PROGRAMS = [
    path for folder in ("", "tools", "configs", "data", "examples") for path in sorted((ROOT / folder).glob("*.py"))
]
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```", re.M | re.S)
FLAG = re.compile(r"(?:DEFINE_\w+|add_argument|add)\(\s*\"(?:--)?([\w-]+)\"")


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


def commands(text):
    """The commands `python ...` in fenced blocks, as lists of words after `python`."""
    for block in FENCE.finditer(text):
        if block["head"] and not block["head"].startswith(("bash", "sh")):
            continue
        for line in block["body"].replace("\\\n", " ").splitlines():
            line = line.partition(" # ")[0]
            if found := re.search(r"(?:^|[\s/])python (?=-m |\S+\.py\b)(.*)", line):
                # A command inside of another's quotes ends with the closing one.
                yield shlex.split(found[1] if found[1].count('"') % 2 == 0 else found[1].rstrip('"'))


def source_of(command):
    """The file that a command runs: of `-m NAME` the module or the package's __main__."""
    if command[0] != "-m":
        return ROOT / command[0]
    path = ROOT / command[1].replace(".", "/")
    return path / "__main__.py" if path.is_dir() else path.with_suffix(".py")


def flags_of(source):
    """Names of the flags that a command defines itself or takes from what all commands share."""
    text = source.read_text()
    names = set(FLAG.findall(text)) | {"help"}
    if shared := re.search(r"(\w+)\.define_flags\(", text):
        names |= set(FLAG.findall(next(ROOT.glob(f"*/{shared[1]}.py")).read_text()))
    return names


def config_of(flag, source):
    """The settings of --config=FILE[:ARGUMENT], by default those of the command."""
    default = re.search(r"define_flags\(\"(configs/[^\"]+)\"", source.read_text())
    given = flag or (default[1] if default else "configs/default.py")
    path, _, argument = given.partition(":")
    specification = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.get_config(*([argument] if argument and "$" not in argument else []))


def has(config, key):
    for part in key.split("."):
        if part not in config:
            return False
        config = config[part]
    return True


def text_of(page):
    """The text in which commands are shown: of a Python file its docstring."""
    text = page.read_text()
    return text if page.suffix == ".md" else f"```\n{ast.get_docstring(ast.parse(text)) or ''}\n```\n"


def check_command(command, page):
    """Asserts that what a command runs, its config file and its flags exist."""
    source = source_of(command)
    if source.name in ("pip.py", "venv.py", "pytest.py", "NAME.py"):
        return
    assert source.exists(), f"{page.name}: {command} runs {source.relative_to(ROOT)}"
    given = [word[2:].partition("=") for word in command if word.startswith("--")]
    settings = next((value for name, _, value in given if name == "config"), "")
    if settings.startswith("configs/shade.py"):  # written by the reader of docs/extending.md
        return
    known = flags_of(source)
    for name, _, _ in given:
        if name.startswith("config."):
            assert has(config_of(settings, source), name.removeprefix("config.")), f"{page.name}: {command}: {name}"
        else:
            assert {name, name.removeprefix("no")} & known, f"{page.name}: {command}: --{name}"
    if settings:
        config_of(settings, source)


@pytest.mark.parametrize("page", PAGES + PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_flags_exist(page):
    for command in commands(text_of(page)):
        check_command(command, page)


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
    """In the blocks and, other than on other pages, in the running text and in the tables."""
    text = REPRODUCE.read_text()
    in_text = [shlex.split(code) for code in re.findall(r"`python ([^`]+)`", FENCE.sub("", text))]
    in_blocks = list(commands(text))
    assert len(in_blocks) >= 20 and in_text
    for command in in_blocks + in_text:
        check_command(command, REPRODUCE)


def test_every_row_of_the_papers_page_has_a_command_or_says_that_there_is_none():
    labelled, used = labelled_commands(), set()
    rows = list(paper_rows())
    assert len(rows) >= 40
    for row in rows:
        labels = set(re.findall(r"\b[A-Z]\d+\b", row["command"]))
        assert labels or "no command yet" in row["command"], row
        assert labels <= {label for label, found in labelled.items() if found}, row
        assert all(row.values()), row
        used |= labels
    assert used == set(labelled)


def test_every_row_of_the_papers_page_tells_arithmetic_from_reproduction():
    for row in paper_rows():
        assert row["kind"].startswith(KINDS), row
        tests = re.findall(r"\[(test_\w+)\]\(\.\./([^)]+)\)", row["kind"])
        assert bool(tests) == ("arithmetic" in row["kind"]), row
        for name, path in tests:
            assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
        if row["kind"].startswith("reproduction"):
            assert LINK.search(row["ours"]), row


def test_howto_names_every_command():
    text = (ROOT / "docs/howto.md").read_text()
    shown = {source_of(command) for command in commands(text)}
    for source in [*ROOT.glob("*.py"), *(p for p in (ROOT / "tools").glob("[a-z]*.py"))]:
        assert source in shown, f"docs/howto.md does not show {source.relative_to(ROOT)}"


@pytest.fixture
def extending(tmp_path, monkeypatch):
    """The examples of docs/extending.md, {file: module}, the files written to a folder that is
    imported from.
    """
    blocks = [b for b in FENCE.finditer((ROOT / "docs/extending.md").read_text()) if b["head"].startswith("python")]
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {}
    for block in blocks:
        title = re.search(r'title="([^"]+)"', block["head"])
        path = tmp_path / (title[1] if title else "script.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["body"])
        specification = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(specification)
        sys.modules[path.stem] = module  # `import my_corruptions` finds the one that is registered
        specification.loader.exec_module(module)
        found[path.relative_to(tmp_path).as_posix()] = module
    yield found
    for module in found.values():
        sys.modules.pop(module.__name__, None)
    corruptions.registry._CORRUPTIONS.pop("mine/shade")
    corruptions.registry._BENCHMARKS.pop("my_benchmark")


def test_extending_examples_do_what_they_say(extending, tmp_path, monkeypatch):
    shaded, alone = np.asarray(extending["script.py"].shaded), np.asarray(extending["script.py"].alone)
    assert shaded.dtype == np.uint8 and set(np.unique(shaded)) <= {130, 200} and len(np.unique(shaded)) == 2
    assert alone.dtype == np.float32 and alone.shape == (32, 32, 3)
    config = extending["configs/shade.py"].get_config()
    assert config.train.corruption == "mine/shade"
    assert corruptions.names(config.eval.corruptions[0])[0] == "mine/shade"

    monkeypatch.setattr(models, "_REGISTRY", models._REGISTRY | extending["models/tiny_net.py"].FAMILY)
    graphdef, state = nnx.split(models.build("tiny_net", 10, dtype="float32"))
    images = jnp.zeros((2, 32, 32, 3))
    logits, features = jax.eval_shape(lambda s, x: nnx.merge(graphdef, s)(x, train=False), state, images)
    assert logits.shape == (2, 10) and features["penultimate"].shape == (2, 16)

    pixels, labels = np.zeros((6, 32, 32, 3), np.uint8), np.arange(6) % 2
    arrays = {
        f"{split}_{what}": x for split in ("train", "test") for what, x in (("images", pixels), ("labels", labels))
    }
    np.savez(tmp_path / "my_dataset.npz", **arrays)
    monkeypatch.setitem(sys.modules, "data.my_dataset", extending["data/my_dataset.py"])
    monkeypatch.setitem(data._LOADERS, "my_dataset", ("data.my_dataset", "load_my_dataset"))
    dataset = data.load("my_dataset", data_dir=tmp_path, train_limit=4)
    assert len(dataset.train) == 4 and len(dataset.test) == 6 and dataset.num_classes == 2


def test_a_broken_link_fails_the_site(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in ("docs", "build") and not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs/install.md"
    page.write_text(page.read_text() + "\n[nowhere](howto.md#no-such-task) [gone](../tests/no_such_test.py)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no-such-task" in done.stderr and "no_such_test" in done.stderr
    assert done.stderr.count("WARNING -") == 2, done.stderr
