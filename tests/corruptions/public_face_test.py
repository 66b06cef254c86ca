"""The public face of the library: typed throughout, and marked as typed for those who install it."""

import importlib.resources
import inspect
import subprocess
import sys

import pytest

import corruptions
from corruptions import augment, camera, cbar, imagenet_c, laion_c, noc, optics, scoring, write
from corruptions.core import built_in, registry
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


def run(code):
    """Runs code in a fresh process; returns what it prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_name_loads_what_it_needs_and_no_other_corruptions():
    loaded = "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('corruptions.')} & set(known)), "
    known = ["jax", "numpy", "camera", "cbar", "imagenet_c", "laion_c", "noc", "optics", "scoring", "write"]
    loaded += "*({'jax', 'numpy'} & sys.modules.keys()))"
    steps = ["import sys, corruptions", "from corruptions import files", "corruptions.get('fog')"]
    steps += ["corruptions.get('noc/hue')", "corruptions.names()", "corruptions.Count"]
    lines = run(f"known = {known}\n" + "\n".join(f"{step}; {loaded}" for step in steps)).splitlines()
    assert lines[:2] == ["", ""]
    fog, hue, every, count = (set(line.split()) - {"jax", "numpy"} for line in lines[2:])
    assert fog == {"imagenet_c"} and hue == {"imagenet_c", "noc"} and every == set(known[2:-2])
    assert count == every | {"scoring"}


def test_the_first_use_may_come_from_many_threads_at_once():
    code = """
import concurrent.futures, threading, corruptions
together = threading.Barrier(8)
asked = [
    lambda: corruptions.names("imagenet_c"), lambda: corruptions.noc.hue, lambda: corruptions.get("hue"),
    lambda: corruptions.benchmarks(), lambda: corruptions.evaluate, lambda: corruptions.get("robodepth/fog"),
    lambda: __import__("corruptions.laion_c"), lambda: corruptions.names("coverage_2026"),
]
def ask(use):
    together.wait()
    return use()
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(len([answer for answer in pool.map(ask, asked) if answer]), len(corruptions.names()))
"""
    assert run(code).split() == ["8", str(len(corruptions.names()))]


def test_the_first_use_may_be_inside_of_a_jit():
    """A module that computes as it is imported would keep arrays of that trace."""
    code = """
import sys, jax, corruptions
jax.jit(lambda: len(corruptions.names()))()
ours = [(name, vars(module)) for name, module in sys.modules.items() if name.startswith("corruptions.")]
kept = lambda value: any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value))
print(len(ours) > 50, [f"{name}.{own}" for name, module in ours for own, value in module.items() if own[:2] != "__" and kept(value)])
"""
    assert run(code) == "True []\n"


def test_names_do_not_depend_on_what_was_used_first():
    assert sorted(name for names in built_in.PACKAGES.values() for name in names) == sorted(
        {*corruptions.benchmarks(), *(found.benchmark for found in registry.every())}
    )
    code = """
import dataclasses, corruptions
blur = corruptions.optics.coma
def refused(call, *arguments):
    try:
        call(*arguments)
    except ValueError as error:
        return str(error)
corruptions.register(dataclasses.replace(blur, benchmark="mine", name="blur", aliases=("fog",)))
assert "noc/blur" in refused(corruptions.get, "blur")
assert "expected a name" in refused(corruptions.register, dataclasses.replace(blur, benchmark="NOC", name="hue"))
assert "already" in refused(corruptions.register, dataclasses.replace(blur, benchmark="robodepth", name="fog"))
assert "already" in refused(corruptions.register_benchmark, "cifar10_c_bar", ["mine/blur"])
print(corruptions.get("fog").qualified_name, corruptions.benchmarks(), *corruptions.names())
"""
    assert run(code).split() == [
        "imagenet_c/fog",
        *str(corruptions.benchmarks()).split(),
        *corruptions.names(),
        "mine/blur",
    ]
