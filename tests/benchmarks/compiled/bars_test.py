"""What a v5e's compiler says of the corruptions is no worse than the committed table.

    pip install -e '.[study,compile_tpu]'
    JAX_PLATFORMS=cpu python -m pytest -m slow tests/benchmarks/compiled/bars_test.py

The compiler takes some 12 minutes of CPU time; nothing runs on a TPU.
"""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import SingleDeviceSharding

import corruptions
from benchmarks.compiled import table
from benchmarks.compiled.__main__ import BATCH, RESULTS, measure
from evaluation.planning import programs
from models.layers import Normalize
from runtime.chips import costs, hlo
from runtime.chips.targets import TARGETS

SIZE = 224
V5E = TARGETS["tpu_v5e"]
PATH = RESULTS / f"compiled_tpu_v5e_corruptions_{SIZE}.md"
BARS = [
    bar for bar in table.BARS["tpu_v5e", SIZE, BATCH].each if "compile" not in bar[0]
]  # seconds depend on the machine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not V5E.installed, reason=f"needs {V5E.compiler_package}, the compiler for {V5E.kind}"),
]


@functools.cache
def committed():
    return table.read(PATH, PATH.read_text().splitlines()[0].removeprefix("# "))


def columns(cells):
    return dict(zip(table.COLUMNS[1:], cells, strict=True))


@pytest.mark.parametrize("name", corruptions.names())
def test_a_bar_that_the_table_keeps_is_kept(name):
    found, before = columns(measure(V5E, "corruptions", name, SIZE, BATCH)), columns(committed()[name])
    for column, bound in BARS:
        if table.keeps(column, table.value_of(before[column]), bound):
            assert table.keeps(column, table.value_of(found[column]), bound), f"{column}: {found[column]}"


def compiled_costs(function, args):
    return costs.of_program(hlo.parse(V5E.compile(V5E.lower(jax.jit(function), *args))[0].as_text()))


@pytest.mark.parametrize(
    "name", ["imagenet_c/brightness", "imagenet_c/gaussian_noise", "imagenet_c/fog", "noc/contrast"]
)
def test_corrupting_normalising_and_casting_write_no_float32_images(name):
    program = programs.corruption(name, BATCH, SIZE, SingleDeviceSharding(V5E.devices()[0]))

    def to_bfloat16(*args):
        return Normalize(None, None, "imagenet")(program.function(*args)).astype(jnp.bfloat16)

    values = BATCH * SIZE**2 * 3
    more = compiled_costs(to_bfloat16, program.args).traffic - compiled_costs(program.function, program.args).traffic
    # One byte more for the result, or uint8 images written and read again; float32 images would be 8.
    assert 0.99 * values <= more <= 3.01 * values
