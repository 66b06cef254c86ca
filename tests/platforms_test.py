"""Traced code does not ask for the current platform, because it may be compiled for another one, and promotes no rank or
dtype silently: the tests are traced strictly (tests/conftest.py).
"""

import ast
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import models
from corruptions import augment
from corruptions import enhance as enhancements
from tests.processes import ROOT
from tests.refusing import refuses

ROOMS = ("corruptions", "models", "data", "runtime", "training", "evaluation", "analysis", "tools")
# Functions of the host, which ask before anything is traced.
ON_THE_HOST = {
    ("corruptions/write/writer.py", "_batch_size"),
    ("evaluation/distances/features.py", "fitting"),
    ("corruptions/core/program_store.py", "folder"),
    ("models/__init__.py", "_given"),
    ("models/layers.py", "path_of"),
    ("training/batches.py", "__init__"),
}
IMAGES = jax.ShapeDtypeStruct((2, 32, 32, 3), np.uint8)


def asking(path):
    """Names the functions in a file that ask for the platform at hand; "" where the module does."""
    text = path.read_text()
    return set(_asking_in(ast.parse(text), "")) if "default_backend" in text else set()


def _asking_in(node, function):
    if "default_backend" in (getattr(node, field, "") for field in ("attr", "id", "name")):
        yield function
    inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
    for child in ast.iter_child_nodes(node):
        yield from _asking_in(child, inside)


@pytest.mark.parametrize(
    "text, names",
    [
        ("ON_CPU = jax.default_backend() == 'cpu'", {""}),
        ("from jax import default_backend as backend", {""}),
        ("class A:\n    f = lambda: jax.default_backend()", {""}),
        ("def f():\n    def g():\n        return jax.default_backend()", {"g"}),
        ("def f():\n    return 'default_backend'", set()),
    ],
)
def test_who_asks_is_found_in_the_whole_module(tmp_path, text, names):
    (tmp_path / "module.py").write_text(text)
    assert asking(tmp_path / "module.py") == names


def test_only_functions_of_the_host_ask():
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    found = {(str(path.relative_to(ROOT)), name) for path in paths for name in asking(path)}
    assert found == ON_THE_HOST


def refused():
    """Makes every query of the platform fail."""
    asked = AssertionError("expected a trace not to ask for the platform, found jax.default_backend()")
    return mock.patch.object(jax, "default_backend", side_effect=asked)


def test_schemes_are_loops_for_a_cpu_alone():
    with refused():
        scheme = jax.jit(lambda key, images: augment.augment(key, images, "patch_gaussian"))
        traced = scheme.trace(jax.random.key(0), IMAGES)
        lowered = {platform: traced.lower(lowering_platforms=(platform,)).as_text() for platform in ("cpu", "tpu")}
    assert "stablehlo.while" in lowered["cpu"] and "stablehlo.while" not in lowered["tpu"]


def test_networks_and_enhancements_are_traced_without_asking():
    graphdef, state = nnx.split(models.abstract("small_resnet", 2, dtype="float32"))
    with refused():
        logits, _ = jax.eval_shape(lambda state, images: nnx.merge(graphdef, state)(images, train=False), state, IMAGES)
        enhanced = jax.eval_shape(lambda images: enhancements.enhance(images, "clahe"), IMAGES)
    assert logits.dtype == jnp.float32 and enhanced.shape == IMAGES.shape


def test_promotion_is_an_error():
    refuses(lambda: jnp.ones((2, 3)) + jnp.ones(3), "rank_promotion")
    refuses(lambda: jnp.ones(3) + jnp.ones(3, jnp.int32), "dtype_promotion=strict")


@pytest.mark.parametrize("name", {name.split("/")[0]: name for name in corruptions.names()}.values())
def test_severities_that_are_drawn_are_traced_strictly(name):
    """One corruption of each benchmark; tests/corruptions/core/checks_test.py traces all, with severities that are given."""
    found = jax.eval_shape(
        lambda key: corruptions.corrupt(key, np.zeros(IMAGES.shape, np.uint8), name), jax.random.key(0)
    )
    assert (found.shape, found.dtype) == (IMAGES.shape, np.uint8)
