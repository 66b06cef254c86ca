"""What the confidence of answers costs: evaluation with it and without, in CPU time, in turns.

    python -m benchmarks.confidence

prints the median over nine pairs of the ratio of CPU times, of showing 2,000 images of 32 pixels to a small ResNet.
"""

from runtime import command  # isort: skip

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import data
import models
from evaluation import correctness
from evaluation.shown import Shown
from runtime import meshes
from training.states import TrainState


def measure(name: str = "small_resnet", number: int = 2000, pairs: int = 9) -> list[float]:
    """Returns the CPU time of `correctness.ask` over the CPU time of the network and its largest logit, per pair."""
    split = data.load("shapes", train_limit=10, test_limit=number).test.to_device()
    shown = Shown(split, meshes.data_mesh(), 500)
    graphdef, params, statistics_ = nnx.split(models.build(name, 10, dtype="float32"), nnx.Param, ...)
    model = graphdef, TrainState(jnp.zeros((), jnp.int32), params, statistics_, ())

    def without():
        for _, logits, labels, _ in correctness.logits_of({"": model}, shown):
            np.asarray(_correct(logits, labels))

    def seconds(function):
        start = time.process_time()
        function()
        return time.process_time() - start

    def both():
        return correctness.ask({"": model}, shown)

    both(), without()
    return [seconds(both) / seconds(without) for _ in range(pairs)]


@jax.jit
def _correct(logits, labels):
    return logits.argmax(-1) == labels


def main(argv: list[str]) -> None:
    ratios = measure()
    print(f"ratio of CPU times: median {statistics.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}")


if __name__ == "__main__":
    command.run(main)
