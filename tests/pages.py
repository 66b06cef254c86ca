"""The documents, and the commands that they show: what each runs, its config file and its flags."""

import ast
import importlib.util
import pathlib
import re
import shlex

from corruptions.assets import FROM_FILES

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
HOWTO = sorted((ROOT / "docs/howto").glob("*.md"))
PROGRAMS = [
    path for folder in ("", "tools", "configs", "data", "examples") for path in sorted((ROOT / folder).glob("*.py"))
]
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```", re.M | re.S)
FLAG = re.compile(r"(?:DEFINE_\w+|add_argument|add)\(\s*\"(?:--)?([\w-]+)\"")


def section_of(page, heading):
    """The text below a heading."""
    return (ROOT / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def examples_of(page, heading):
    """The Python blocks below a heading."""
    return re.findall(r"```python\n(.*?)```", section_of(page, heading), re.S)


def example_of(page, heading):
    """The first of them."""
    return examples_of(page, heading)[0]


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
    """Names of the flags that a command defines itself or takes from what several commands share."""
    text = source.read_text()
    names = set(FLAG.findall(text)) | {"help"}
    if "command.run(" in text:
        names.add("imports")
    if "FROM_FILES" in text:  # flags that name files, `style` by a module of --imports
        names |= {"style", *FROM_FILES}
    if shared := re.search(r"(\w+)\.define_flags\(", text):
        names |= set(FLAG.findall(next(ROOT.glob(f"*/{shared[1]}.py")).read_text()))
    for module in re.findall(r"^from ([\w.]+) import define_\w+$", text, re.M):
        names |= set(FLAG.findall((ROOT / module.replace(".", "/")).with_suffix(".py").read_text()))
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
    known = flags_of(source)
    for name, _, _ in given:
        if name.startswith("config."):
            assert has(config_of(settings, source), name.removeprefix("config.")), f"{page.name}: {command}: {name}"
        else:
            assert {name, name.removeprefix("no")} & known, f"{page.name}: {command}: --{name}"
    if settings:
        config_of(settings, source)
