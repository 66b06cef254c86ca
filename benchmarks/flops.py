"""Floating-point operations of training, counted from the network, and a device's peak."""

import time

import jax
import numpy as np

from models import costs

PEAK = {  # device_kind of JAX (the first prefix that fits) -> dense bfloat16 FLOP/s in the makers' data sheets
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA A100": 312e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5e": 197e12,
    "TPU v5p": 459e12,
    "TPU v5": 459e12,
    "TPU v6 lite": 918e12,
    "TPU v6e": 918e12,
}
_SIDE = 2048  # of the matrices of a CPU's peak


def training_flops(name, image_size=32, num_classes=10, **options):
    """Counts the operations of a training step per image.

    Three times the forward pass's, less the first layer's input gradient.

    Multiplications and additions of convolutions and matrix products count one each; the gradients
    with respect to input and kernel cost as much as the forward pass. What is elementwise is not
    counted, as usual for a chip's utilisation.
    """
    forward = [2 * product.multiply_adds for product in costs.products(name, image_size, num_classes, **options)]
    return 3 * sum(forward) - forward[0]


def peak_flops():
    """(FLOP/s of all devices together, what that number is)."""
    devices = jax.devices()
    if devices[0].platform == "cpu":
        return _matrix_flops(devices), f"float32 products of {_SIDE} x {_SIDE} matrices, one on each core, measured"
    kind = devices[0].device_kind
    for name, value in PEAK.items():
        if kind.startswith(name):
            return value * len(devices), f"{value / 1e12:.0f} TFLOP/s in bfloat16 for each {kind}, its maker's number"
    raise ValueError(f"expected a device among {', '.join(PEAK)}, found {kind!r}; add it to benchmarks/flops.py")


def _matrix_flops(devices):
    sharding = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.asarray(devices), ("data",)), jax.sharding.PartitionSpec("data")
    )
    matrices = jax.device_put(np.ones((len(devices), _SIDE, _SIDE), np.float32), sharding)
    product = jax.jit(lambda a: a @ a)
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        jax.block_until_ready(product(matrices))
        seconds.append(time.perf_counter() - start)
    return 2 * len(devices) * _SIDE**3 / min(seconds[1:])
