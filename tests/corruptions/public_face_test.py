"""The public face of the library: typed throughout, and marked as typed for those who install it."""

import importlib.resources
import inspect
import subprocess
import sys

import pytest

import corruptions
from corruptions import augment, camera, cbar, imagenet_c, laion_c, noc, optics, scoring, write
from tests.processes import ROOT


def public_functions(module):
    """(name, function) of every public function, and of the public methods of every public class, of a module."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isroutine(value):
            yield name, value
        elif inspect.isclass(value):
            methods = {n: f for n, f in vars(value).items() if inspect.isfunction(f)}
            yield from ((f"{name}.{n}", f) for n, f in methods.items() if not n.startswith("_") or n == "__call__")


@pytest.mark.parametrize(
    "module",
    [corruptions, augment, camera, cbar, imagenet_c, laion_c, noc, optics, scoring, write],
    ids=lambda m: m.__name__,
)
def test_public_functions_say_what_they_take_and_give(module):
    functions = dict(public_functions(module))
    assert functions
    for name, function in functions.items():
        signature = inspect.signature(function)
        untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"]
        assert not untyped, f"{module.__name__}.{name}: {untyped}"
        assert signature.return_annotation is not signature.empty, f"{module.__name__}.{name} returns what?"
        assert function.__doc__ or name.endswith("__call__"), f"{module.__name__}.{name} has no docstring"


def test_the_package_is_marked_as_typed():
    assert importlib.resources.files("corruptions").joinpath("py.typed").is_file()


def test_scoring_and_writing_are_loaded_when_they_are_used():
    code = (
        "import sys, corruptions; before = {m for m in sys.modules if m.startswith(('corruptions.scoring', 'corruptions.write'))}; "
        "from corruptions import evaluate, write_dataset; print(before, evaluate.__module__, corruptions.Count.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "set() corruptions.scoring.classifier Count\n", done.stderr
