"""What is known of a program: kept when a compiler said it, else between two bounds."""

import dataclasses
import importlib.metadata

import jax
import jax.numpy as jnp
import pytest

from evaluation.planning import asked
from evaluation.planning.programs import Program
from runtime.chips import gpus, machines, targets
from runtime.chips.targets import PEAK, TARGETS, Target
from runtime.files import DamagedFileError


def product(mesh, parts):
    """x @ x, 64 x 64 in float32, on the first device of a mesh."""
    place = jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])
    matrix = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=place)
    return Program(jax.jit(lambda x: x @ x), (matrix,), 64 // parts)


def test_without_a_compiler_an_estimate_between_two_bounds(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    found = asked.ask(machines.find("v5e-8"), 1, product)
    assert found.least == pytest.approx(2 * 64**3 / PEAK["TPU v5e"])
    assert found.most == pytest.approx(3 * 64 * 64 * 4 / 819e9)  # bytes: two operands and the result
    assert (found.compile_seconds, found.memory, found.refused) == (0, 0, "")


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """A compiler for TPUs that is there, and is the CPU's; counts the programs it compiles."""
    calls, own = [], Target.compile
    monkeypatch.setattr(gpus, "OPTIONS", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1")
    monkeypatch.setattr(Target, "devices", lambda self, chips: jax.devices()[:1])
    monkeypatch.setattr(Target, "compile", lambda self, lowered: calls.append(1) or own(self, lowered))
    return calls


def test_a_compiler_is_asked_once_about_a_program(compiler):
    first = asked.ask(machines.find("v5e-1"), 1, product)
    assert asked.ask(machines.find("v5e-1"), 1, product) == first and len(compiler) == 1
    assert first.memory >= 2 * 64 * 64 * 4 and first.least == first.most == 0  # the CPU's estimates no cycles
    asked.ask(machines.find("v4-2"), 1, product)
    assert len(compiler) == 2


def test_a_gpu_takes_at_least_its_traffic_and_its_kernels(compiler):
    found = asked.ask(machines.find("h200-1"), 1, product)
    assert found.least == pytest.approx(3 * 64 * 64 * 4 / 4.8e12 + 3e-6, rel=0.2)


def test_what_does_not_fit_is_kept_as_refused(compiler, monkeypatch):
    def refuse(self, lowered):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm")

    monkeypatch.setattr(Target, "compile", refuse)
    found = asked.ask(machines.find("v5e-1"), 1, product)
    assert "RESOURCE_EXHAUSTED" in found.refused
    assert asked.ask(machines.find("v5e-1"), 1, product) == found


def test_an_error_that_may_pass_is_not_kept(compiler, monkeypatch):
    own = Target.compile

    def fail(self, lowered):
        raise jax.errors.JaxRuntimeError("UNAVAILABLE: the compiler is in use")

    monkeypatch.setattr(Target, "compile", fail)
    assert "UNAVAILABLE" in asked.ask(machines.find("v5e-1"), 1, product).refused
    monkeypatch.setattr(Target, "compile", own)
    assert not asked.ask(machines.find("v5e-1"), 1, product).refused


def test_another_account_of_a_chip_is_asked_anew(compiler):
    machine = machines.find("h200-1")
    slow = dataclasses.replace(machine, target=dataclasses.replace(machine.target, bandwidth=1e9))
    first, second = (asked.ask(one, 1, product) for one in (machine, slow))
    assert second.least > 10 * first.least and len(compiler) == 2


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (targets, "_LAUNCH", 1e-6),
        (targets, "_ACCOUNT", 0),
        (targets, "PEAK", {"NVIDIA H200": 1.0}),
        (gpus, "H200", "another"),
        (gpus, "OPTIONS", {"another": True}),
    ],
)
def test_an_account_holds_all_that_numbers_depend_on(compiler, monkeypatch, module, name, value):
    before = TARGETS["h200"].account()
    monkeypatch.setattr(module, name, value)
    assert TARGETS["h200"].account() != before


@pytest.mark.parametrize("name", targets.EFFORT)
def test_an_account_holds_how_much_time_the_compiler_may_take(compiler, name):
    before, standard = TARGETS["h200"].account(), getattr(jax.config, name)
    try:
        jax.config.update(name, "O1" if isinstance(standard, str) else -0.5)
        assert TARGETS["h200"].account() != before
    finally:
        jax.config.update(name, standard)
    assert TARGETS["h200"].account() == before


def test_what_was_kept_and_damaged_is_named(compiler, tmp_path):
    asked.ask(machines.find("v5e-1"), 1, product)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text('{"least": "soon"}')
    with pytest.raises(DamagedFileError, match=rf"{kept.name}: expected .*; remove it"):
        asked.ask(machines.find("v5e-1"), 1, product)
