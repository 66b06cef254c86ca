"""The direction of imports: scripts, tools -> evaluation -> training, analysis -> data -> runtime
-> corruptions.
"""

import ast
import collections
import graphlib
import pathlib
import subprocess
import sys

import pytest

from tests.processes import ROOT

ALLOWED = {  # package -> our packages it may import, besides itself
    "corruptions": set(),
    "models": set(),
    "runtime": {"corruptions"},
    "data": {"corruptions", "runtime"},
    "analysis": {"corruptions", "data", "runtime"},
    "training": {"corruptions", "models", "data", "runtime"},
    "evaluation": {"corruptions", "models", "data", "runtime", "training", "analysis"},
    "tools": {"corruptions", "models", "data", "runtime", "training", "analysis", "evaluation", "configs"},
    "benchmarks": {"corruptions", "models", "data", "runtime", "training", "analysis", "evaluation", "configs"},
    "projects": {"corruptions", "models", "data", "runtime", "training", "analysis", "evaluation", "configs"},
    "configs": {"training"},
}
REFERENCES = ("tests.reference.",)  # benchmarks may use only the references of the tests
SCRIPTS = {"train", "eval", "overlap", "select_noc"}
OURS = set(ALLOWED) | {"tests"} | {path.stem for path in ROOT.glob("*.py")}


def modules(path):
    """Dotted names of what is imported anywhere in a file."""
    return names_in(ast.parse(path.read_text()))


def names_in(tree):
    """Dotted names of what a syntax tree imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported(path, but=()):
    """Top-level names of modules imported anywhere in a file, except the names that start with `but`."""
    return {name.split(".")[0] for name in modules(path) if not f"{name}.".startswith(tuple(but))}


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_point_one_way(package):
    files = list((ROOT / package).rglob("*.py"))
    assert files, f"no files in {package}"
    for path in files:
        wrong = imported(path, but=REFERENCES if package == "benchmarks" else ()) & OURS - ALLOWED[package] - {package}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_no_modules_import_each_other_in_a_circle():
    """Imports at the top of a file, those for types included; inside a function they run later."""
    files = [path for package in sorted(ALLOWED) for path in (ROOT / package).rglob("*.py")]
    imports = {str(path.relative_to(ROOT)): set(files_imported_at_the_top(path)) for path in files}
    assert sum(map(len, imports.values())) > len(imports)
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, which names a circle


def files_imported_at_the_top(path):
    """Yields the files of ours that a file imports outside of its functions and classes."""
    statements = list(ast.parse(path.read_text()).body)
    while statements:
        statement = statements.pop()
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name in names_in(statement):
                found = [file for file in map(file_of, (name, name.rpartition(".")[0])) if file]
                yield from found[:1]
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            statements += [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]


def file_of(module):
    """The file of a dotted name, or None where it is not a module of ours."""
    path = module.replace(".", "/")
    return next((file for file in (f"{path}.py", f"{path}/__init__.py") if module and (ROOT / file).is_file()), None)


def test_packages_of_the_library_import_one_way_and_few_others():
    """The packages and single files of `corruptions`, the face `__init__` included: no circle, few imports, few levels."""
    root, imports = ROOT / "corruptions", collections.defaultdict(set)
    for path in root.rglob("*.py"):
        own = part_of(path.relative_to(ROOT).as_posix())
        files = (file_of(name) or file_of(name.rpartition(".")[0]) for name in modules(path))
        imports[own] |= {part_of(file) for file in files if file} - {own}
    order = graphlib.TopologicalSorter(imports).static_order()  # raises CycleError, which names a circle
    levels = {}
    for part in order:
        levels[part] = 1 + max((levels[below] for below in imports[part]), default=0)
    assert imports["core"] == {"files", "primitives"} and not imports["files"] | imports["primitives"]
    assert len(imports) <= 20 and max(levels.values()) <= 7
    assert sum(map(len, imports.values())) <= 55, dict(imports)


FILES = "corruptions/files.py"
ONLY_IN = {  # what few files do for all others
    "hashlib": {FILES},
    "difflib": {FILES, "models/__init__.py"},  # models import none of our packages
    "fcntl": {FILES},
    "a rename": {FILES, "benchmarks/peers/images.py"},  # a script without our packages
    "XDG_CACHE_HOME": {FILES},
    "tqdm": {FILES},
}


@pytest.mark.parametrize("what", ONLY_IN)
def test_digests_suggestions_locks_renames_and_bars_are_made_in_few_files(what):
    files = [*ROOT.glob("*.py"), *(path for package in ALLOWED for path in (ROOT / package).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix() for path in files if what in used_in(ast.parse(path.read_text()))}
    assert found == ONLY_IN[what]


def used_in(tree):
    """Returns which of these modules, texts and renaming calls a syntax tree uses."""
    found = {name.split(".")[0] for name in names_in(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            found.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            call, one = ast.unparse(node.func), len(node.args) == 1 and not node.keywords
            renames = call in ("os.rename", "os.renames", "os.replace", "shutil.move")
            if renames or (
                one and node.func.attr in ("rename", "replace")
            ):  # a text takes two, a frame or a date keywords
                found.add("a rename")
    return found


ONE_PLACE = {  # what evaluation is made of: the files that define it
    "Count": {"corruptions/scoring/counts.py"},
    "Divisors": {"corruptions/scoring/values.py"},  # error, CE and relative CE of each table, by a reference's errors
    "Value": {"corruptions/scoring/values.py"},  # a mean over images with its standard error
    "Answered": {"corruptions/scoring/results.py"},
    "Folder": {"corruptions/scoring/folder.py"},
    "Probing": {"corruptions/core/origin.py"},
    "probe_shown": {"corruptions/core/origin.py"},
    "below_chance": {"corruptions/scoring/counts.py"},
    # the function of keywords, and that of objects, which calls the same and adds tables
    "evaluate": {"corruptions/scoring/classifier.py", "evaluation/commands.py"},
}


def test_what_evaluation_is_made_of_is_defined_once():
    found = collections.defaultdict(set)
    for path in (path for package in ALLOWED for path in (ROOT / package).rglob("*.py")):
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name in ONE_PLACE:
                found[statement.name].add(path.relative_to(ROOT).as_posix())
    assert found == ONE_PLACE


def part_of(file):
    """The package or single file of the library that `corruptions/...` belongs to."""
    return pathlib.PurePath(file).parts[1].removesuffix(".py")


def test_the_four_scripts_are_the_only_ones_at_the_top_and_do_not_import_each_other():
    assert {path.stem for path in ROOT.glob("*.py")} == SCRIPTS
    for name in SCRIPTS:
        assert not imported(ROOT / f"{name}.py") & (SCRIPTS | {"tools"} - {name}), name


def test_no_project_imports_another():
    projects = [path for path in (ROOT / "projects").iterdir() if path.is_dir() and list(path.glob("*.py"))]
    assert projects
    for project in projects:
        for path in project.rglob("*.py"):
            found = {name.split(".")[1] for name in modules(path) if name.startswith("projects.")}
            assert found <= {project.name}, f"{path.relative_to(ROOT)} imports {found}"


@pytest.mark.parametrize(
    "folder, others, but",
    [("tools", {"tools"}, ()), ("tests/reference", OURS, REFERENCES)],
    ids=["tools", "references"],
)
def test_no_tool_imports_another_and_references_share_no_code_with_what_they_check(folder, others, but):
    files = list((ROOT / folder).rglob("*.py"))
    assert len(files) > 10
    for path in files:
        assert not imported(path, but=but) & others, path.name


def test_one_file_of_the_library_asks_private_jax():
    found = {path.name for path in (ROOT / "corruptions").rglob("*.py") if "jax._src" in path.read_text()}
    assert found == {"forks.py"}


def test_importing_corruptions_is_light():
    code = (
        "import time, sys, jax, jax.numpy; before = set(sys.modules); t = time.process_time(); import corruptions; corruptions.names(); "
        "print(time.process_time() - t, *{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    seconds, *loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).split()
    assert not {"flax", "tensorflow", "tensorflow_datasets", "matplotlib", "PIL", "scipy"} & set(loaded)
    assert float(seconds) < 1.0, f"importing corruptions took {seconds} s of CPU time beyond jax"


def test_the_library_needs_jax_and_numpy_alone():
    """Finds where a module is imported; imports inside of functions are optional."""
    allowed = {"corruptions", "jax", "numpy", *sys.stdlib_module_names}
    for path in (ROOT / "corruptions").rglob("*.py"):
        at_the_top = [
            node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        found = {name.split(".")[0] for node in at_the_top for name in names_in(node)}
        assert found <= allowed, f"{path.relative_to(ROOT)} imports {found - allowed}"
