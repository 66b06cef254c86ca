"""The benchmark of training: its count of operations, and a table of a network small enough for
tests."""

import argparse

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

import models
from benchmarks import train, train_row
from benchmarks.timing import training_flops


@pytest.mark.parametrize(
    "name, image_size, multiplications",
    [  # of the forward pass, as widely reported (torchvision's table gives GFLOPS counted this way)
        ("resnet18", 224, 1.814e9),
        ("resnet50", 224, 4.089e9),
        ("densenet121", 224, 2.834e9 - 3 * 0.0771e9),  # ours halves the maps before the 1x1 convolutions of transitions
        ("cifar_resnet18", 32, 0.5557e9),
    ],
)
def test_operations_are_three_forward_passes_of_the_published_size(name, image_size, multiplications):
    classes = 10 if image_size == 32 else 1000
    assert training_flops(name, image_size, classes) == pytest.approx(6 * multiplications, rel=0.03)


def test_operations_agree_with_the_compiler():
    """XLA's own count of an unrolled step, of which the elementwise part of a wide network is a few
    per cent."""
    graphdef, params, rest = nnx.split(
        models.build("small_resnet", 10, dtype="float32", conv="xla", widths=(96, 192)), nnx.Param, ...
    )

    def step(params, rest, images, labels):
        def loss(params):
            logits, _ = nnx.merge(graphdef, params, rest, copy=True)(images, train=True)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        return jax.grad(loss)(params)

    lowered = jax.jit(step).lower(params, rest, jnp.zeros((2, 192, 192, 3)), jnp.zeros(2, jnp.int32))
    counted = 2 * training_flops("small_resnet", 192, 10, widths=(96, 192))
    # The compiler leaves out products with the padding's zeros (few in large maps) and counts what
    # is elementwise.
    assert lowered.cost_analysis()["flops"] == pytest.approx(counted, rel=0.05)


@pytest.mark.slow
def test_a_row_is_measured_and_written(tmp_path):
    found = train_row.measure("small_resnet", 16, 8, steps=2, blocks=2, corruption_names=["noc/hue", "noc/border"])
    assert found["slowest"] in ("noc/hue", "noc/border") and found["corruption"] > 0
    assert min(found[key] for key in ("step", "loop", "corrupted_loop")) > 0
    row = train.parse_row("small_resnet:16:8")
    text = train.report("| table |", [(row, found)])
    assert "10,000 images/s; not yet measured" in text and "| table |" in text
    fixed = found | {"step": 0.08, "loop": 0.1, "corrupted_loop": 0.2, "corruption": 0.02, "flops": 1e9, "peak": 1e12}
    assert train.cells(row, fixed)[4:12] == ["80", "40", "1", "0.08", "8 %", "20 %", fixed["slowest"], "25 %"]


def test_rows_are_read_or_named_as_wrong():
    assert train.parse_row("resnet18:224:8:bfloat16")["dtype"] == "bfloat16"
    with pytest.raises(argparse.ArgumentTypeError, match="found 'resnet18:big:8'"):
        train.parse_row("resnet18:big:8")
