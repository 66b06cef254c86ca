"""Programs for described chips: traced on this machine's devices, compiled by its compiler in place of theirs.

The slow tests take the TPU's own compiler (`pip install -e '.[study,compile-tpu]'`), some 12 minutes of CPU time.
"""

import importlib.metadata
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

import models
from benchmarks.compiled import __main__ as command
from benchmarks.compiled import chips, hlo, plan, programs
from benchmarks.compiled.chips import TARGETS
from configs import default, overlap_imagenet100, scheme_study
from models.layers import Normalize
from runtime import meshes
from tests.refusing import refuses

V5E, H200 = TARGETS["v5e"], TARGETS["h200"]
AXES = ("model", "data")
GIB = 2**30
PATH = pathlib.Path(__file__).parents[3] / "benchmarks" / "results" / "compiled_tpu_v5e_corruptions_224.md"


@pytest.fixture
def own_compiler(monkeypatch):
    """Has this machine's compiler stand for all others."""
    monkeypatch.setattr(chips, "_GPU_OPTIONS", {})
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "1")
    monkeypatch.setattr(chips.Target, "mesh", lambda self, rows, columns: meshes.data_mesh(1))


def product(mesh):
    """x @ x, 64 x 64 in float32, twice."""
    place = jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])
    matrix = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=place)
    loop = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c @ c, None), x, None, length=2)[0])
    return programs.Program(loop, (matrix,), images=64, batches=2)


def test_costs_of_one_batch(own_compiler):
    found = programs.measure(H200, product)
    assert found.flops == pytest.approx(2 * 64**3, rel=0.01) and found.costs["trips"] == 1
    traffic, kernels = found.costs["traffic"] / H200.bandwidth, chips.LAUNCH * found.costs["kernels"]
    assert found.costs["traffic"] >= 3 * 64 * 64 * 4 and found.seconds == pytest.approx(traffic + kernels)
    assert found.memory >= 2 * 64 * 64 * 4 and found.compile_seconds > 0


def test_seconds_are_cycles_where_the_compiler_estimates_them_and_else_a_lower_bound():
    costs = {"cycles": 1_500_000, "kernels": 1000, "traffic": 4_800_000_000}
    assert V5E.seconds(costs, 1e15) == pytest.approx(1e-3)
    assert H200.seconds(costs, 0) == pytest.approx(1e-3 + 3e-3)  # bytes, and 3 microseconds a kernel
    assert H200.seconds(costs, 989e12) == pytest.approx(1)
    assert "lower bound" in H200.model and "cycles" in V5E.model


def missing(package):
    raise importlib.metadata.PackageNotFoundError(package)


@pytest.mark.parametrize(
    "target, version, number, error, message",
    [
        (V5E, missing, 1, SystemExit, r"expected libtpu.*found none; pip install -e '\.\[study,compile-tpu\]'"),
        (H200, missing, 1, SystemExit, r"expected jax-cuda12-plugin.*found none; .*'jax\[cuda12\]'"),
        (V5E, lambda package: "1", 17, ValueError, "expected at most 16 chips, found 17"),
    ],
)
def test_refusals(monkeypatch, target, version, number, error, message):
    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(error, match=message):
        target.mesh(1, number)


@pytest.mark.parametrize(
    "kind, name, images, batches",
    [
        ("corruptions", "imagenet_c/brightness", 2, 1),
        ("corruptions", "noc/border", 2, 1),
        ("schemes", "patch_gaussian", 2, 1),
        ("evaluation", "fast_cifar:32:4:1x1", 4, programs.STEPS),
        ("training", "fast_cifar:32:4:1x1", 4, programs.STEPS),
    ],
)
def test_every_kind_of_program_traces(kind, name, images, batches):
    program = programs.build(kind, name, 32, 2, meshes.data_mesh(1))
    assert (program.images, program.batches) == (images, batches)
    out = program.function.trace(*program.args, **program.static).out_info
    assert jax.tree.leaves(out)[-1].shape[0] == (images if batches == 1 else batches)


def test_networks_of_the_tables_exist():
    assert {name.split(":")[0] for listed in programs.NETWORKS.values() for name in listed} <= set(models.names())


def measured(seconds=1e-3, memory=2 * GIB, exact=True):
    costs = {"cycles": 7, "traffic": 819_000_000, "kernels": 12, "trips": 0, "gathers": 3, "collectives": 0}
    rows = [("gather", "f32[2]", 1, exact, 70), ("add|sub", "f32[2]", 1, True, 26), ("mul", "f32[2]", 1, True, 4)]
    operations = hlo.pd.DataFrame(rows, columns=["source", "result", "times", "exact", "cycles"])
    operations = operations.reindex(columns=[*operations, *hlo.COSTS[1:]], fill_value=0)
    return programs.Measured(2.25, memory, 128 * 2**20, operations, hlo.pd.Series(costs), 98.5e9, seconds)


def test_the_command_prints_a_row_for_each_program(monkeypatch, capsys):
    def measure(target, build, *shape):
        if build.args[1] == "noc/border":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 20G | of 15G")
        return measured(exact=build.args[1] == "noc/hue")

    monkeypatch.setattr(programs, "measure", measure)
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "1")
    arguments = ["--target=v5e", "--kernels=1", "--names", "noc/hue", "noc/border", "imagenet_c/fog"]
    monkeypatch.setattr("sys.argv", ["compiled", *arguments])
    command.main()
    text = capsys.readouterr().out
    assert "# Corruptions compiled for TPU v5e, 224x224, batch 128, JAX" in text
    # 1 ms for 128 images; .819 GB are 1 ms too, and 21.3 times 128 images in and out; 98.5 GFLOP are half of 1 ms
    numbers = "12 | {}0 | 3 | 0 | 21.3 | 128,000 | 128,000 | 50.0 % | gather 70 %; add/sub 26 % |"
    assert f"| noc/hue | 2.2 | 1.00 | {numbers.format('')}" in text
    assert f"| imagenet_c/fog | 2.2 | 1.00 | {numbers.format('<= ')}" in text
    assert "| noc/border | not compiled: RESOURCE_EXHAUSTED: 20G / of 15G |" in text
    assert text.count("| program |") == 1 and text.count("gather f32[2]") == 2


def study(module=overlap_imagenet100, variant="resnet18", **changes):
    config = module.get_config(variant)
    config.model.name = "fast_cifar"
    if module is overlap_imagenet100:
        config.study.corruptions = ("noc/border", "noc/hue", "imagenet_c/fog")
    config.update(changes)
    return config


@pytest.fixture
def planned(monkeypatch, own_compiler):
    """Plans with half a second a step; chips are numbered, and no compiler is asked."""
    Chip = type("Chip", (), {"platform": "tpu"})
    mesh = {n: Mesh(np.array([[Chip() for _ in range(n)]]), AXES) for n in (1, 4, 8, 16)}
    monkeypatch.setattr(chips.Target, "mesh", lambda self, rows, columns: mesh[columns])
    monkeypatch.setattr(programs, "measure", lambda *arguments: measured(seconds=0.5))
    return lambda config, name, number: list(plan.plan(config, TARGETS[name], number))


@pytest.mark.parametrize("name, number, at_once, each", [("v5e", 4, 4, 1), ("v4", 16, 1, 16), ("h200", 1, 1, 1)])
def test_a_study_in_rounds(planned, name, number, at_once, each):
    (row,) = planned(study(), name, number)  # four models; several hosts train one at a time
    assert (row["at once"], row["chips each"], row["rounds"]) == (at_once, each, 4 // at_once)
    assert row["hours"] == pytest.approx(4 / at_once * (128_117 // 256 * 40) * 0.5 / 3600)
    test, whole = 3 * 5000 * 224**2 / GIB, 3 * (128_117 + 5000) * 224**2 / GIB
    block = row["GiB a chip"] - 2 - (whole if name == "h200" else test)  # 19 GB stay on an H200, the test set on all
    step = 3 * 256 / each * 224**2 / GIB
    assert block >= 0.99 * step and block / step == pytest.approx(round(block / step))


def test_models_with_other_images_are_groups_of_their_own(planned):
    rows = planned(study(scheme_study, "cifar10"), "v5e", 8)
    assert sorted((row["views"], row["rounds"] * row["at once"]) for row in rows) == [(1, 16), (1, 24), (3, 16)]


def test_a_single_training_is_one_model_on_all_chips(planned, monkeypatch):
    config = default.get_config()
    config.dataset.name, config.model.name = "cifar10", "fast_cifar"
    (row,) = planned(config, "v5e", 4)
    assert (row["at once"], row["chips each"], row["rounds"]) == (1, 4, 1)
    refuses(lambda: planned(study(study={"parallel": 4}), "v4", 16), "config.study.parallel 1 on several hosts")

    def refuse(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 20G of 15G")

    monkeypatch.setattr(programs, "measure", refuse)
    assert "20G of 15G" in planned(config, "v5e", 4)[0]["refused"]


_LINES = [line.strip("| \n").split(" | ") for line in PATH.read_text().splitlines() if line.startswith("| ")]
COMMITTED = {line[0]: dict(zip(_LINES[0], line)) for line in _LINES[1:]}


def rate_and_memory(cells):
    return [float(cells[name].replace(",", "")) for name in ("images/s by the model", "temporaries MiB/image")]


@pytest.mark.slow
@pytest.mark.needs(V5E.package)
@pytest.mark.parametrize("name", COMMITTED)
def test_one_form_for_all_platforms_costs_a_tpu_less_than_half_of_the_committed_speed(name):
    committed = COMMITTED[name]
    found = programs.measure(V5E, lambda mesh: programs.build("corruptions", name, 224, 128, mesh))
    rate, memory = rate_and_memory(command.row(V5E, found, 128, 224**2))
    committed_rate, committed_memory = rate_and_memory(committed)
    assert rate > committed_rate / 2 and memory < 2 * max(committed_memory, 0.1)


@pytest.mark.slow
@pytest.mark.needs(V5E.package)
@pytest.mark.parametrize(
    "name", ["imagenet_c/brightness", "imagenet_c/gaussian_noise", "imagenet_c/fog", "noc/contrast"]
)
def test_corrupting_normalising_and_casting_write_no_float32_images(name):
    def normalised(mesh):
        program = programs.build("corruptions", name, 224, 128, mesh)
        normalise = Normalize(None, None, "imagenet")
        return program._replace(function=jax.jit(lambda *args: normalise(program.function(*args)).astype(jnp.bfloat16)))

    alone = programs.measure(V5E, lambda mesh: programs.build("corruptions", name, 224, 128, mesh))
    more = programs.measure(V5E, normalised).costs["traffic"] - alone.costs["traffic"]
    # One byte more for the result, or uint8 images written and read again; float32 images would be 8.
    assert 0.99 <= more / (128 * 224**2 * 3) <= 3.01
