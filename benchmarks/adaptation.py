"""Adaptation on a stream: images a second of plain evaluation, BN-1 and TENT, PyTorch beside them in the same run.

    python -m benchmarks.adaptation --threads=2 --peer_python=PEER --out=benchmarks/results/adaptation_cpu.md

A call shows a stream of random uint8 images in memory to `small_resnet`, from the method's first state to the predicted classes.
PEER is a Python with torch: the same loop in both memory layouts, in turn with ours; the layout that is faster by the clock, or in CPU time,
counts. `--threads` is the number of cores of this process and of the peer. A row is written when it is measured.
"""

from runtime import command  # isort: skip

import os

import jax
import numpy as np
from absl import flags
from flax import nnx

import models
from benchmarks import timing
from evaluation.streams import methods, run
from evaluation.streams.networks import Weights
from evaluation.streams.tent import Start

NETWORK, SIDE, CLASSES = "small_resnet", 32, 10
HEADER = ("method", "images/s", "CPU images/s", "time / source", "CPU time / source")


def define_flags():
    flags.DEFINE_list("methods", ["bn1", "tent"], "Methods of evaluation.streams; the peer has source, bn1 and tent.")
    flags.DEFINE_integer("images", 10_000, "Images of the stream, whole batches.", lower_bound=1)
    flags.DEFINE_integer("batch", 200, "Images in a batch.", lower_bound=1)
    flags.DEFINE_integer("threads", 0, "Cores to use; 0 for all.", lower_bound=0)
    flags.DEFINE_integer("rounds", 9, "Repetitions.", lower_bound=1)
    flags.DEFINE_string("peer_python", "", "Python with torch; empty leaves the peer out.")
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")


def work(name: str, number: int, batch: int):
    """Makes the work of a method on a stream of `number` images: turn -> int32 [number]."""
    graphdef, *parts = nnx.split(models.build(NETWORK, CLASSES, dtype="float32"), nnx.Param, ...)
    given = np.random.default_rng(0).integers(0, 256, (number, SIDE, SIDE, 3), np.uint8)
    pixels, method = jax.device_put(given), methods.make(name, batch, SIDE, CLASSES)
    plan, start = run.plan(number, np.zeros(1, int), batch), Start(CLASSES, (batch, SIDE, SIDE, 3))

    def images(count):
        return (pixels[begin : begin + count] for begin in range(0, number, count))

    return lambda turn: run.predictions(graphdef, Weights(*parts), method, images, plan, start)


def cells(name, peer, given):
    """Measures a row: the cells after the name of its method."""
    compared = {one: work(one, given.images, given.batch) for one in (name, "source")}
    for layout in ("NCHW", "NHWC") if peer else ():
        request = {"model": NETWORK, "batch": given.batch, "steps": given.images // given.batch, "method": name}
        compared[layout] = lambda turn, request=request | {"channels_last": layout == "NHWC"}: peer.spend(**request)
    times = timing.measure(compared, given.rounds)
    cores = 1, len(os.sched_getaffinity(0))
    rate = {key: [given.images * n / s for n, s in zip(cores, found.median)] for key, found in times.items()}
    pairs = zip((times[name].wall, times[name].cpu), (times["source"].wall, times["source"].cpu))
    found = [f"{value:,.0f}" for value in rate[name]] + [f"{np.median(own / plain):.2f}" for own, plain in pairs]
    if peer:
        best = [max(rate["NCHW"][clock], rate["NHWC"][clock]) for clock in (0, 1)]
        found += [f"{value:,.0f}" for value in best]
        found += [f"{own / other:.2f}" for own, other in zip(rate[name], best)]
    return [*found, f"{os.getloadavg()[0]:.1f}"]


def main(argv):
    given = command.given(argv)
    if given.images % given.batch:
        raise ValueError(f"expected --images a multiple of --batch {given.batch}, found {given.images}")
    threads, peer = timing.on_cores(given, "adaptation.py")
    top = (
        f"# Speed of adaptation on a stream\n\n{timing.title()}; {threads} threads. Peer: {peer.hello['version'] if peer else 'none'}. "
        f"`{NETWORK}`, a stream of {given.images:,} images of {SIDE} pixels in batches of {given.batch}; medians of {given.rounds} "
        f"repetitions in turn. `CPU`: images in a second of each thread's CPU time times the threads; `/ source`: median over pairs, to the "
        f"network that adapts nothing; `load`: load average, other work included.\n"
    )
    header = [*HEADER, *(timing.PEER_COLUMNS if peer else ()), "load"]
    timing.continued(given.out, top, header, given.methods, lambda name: cells(name, peer, given))


if __name__ == "__main__":
    define_flags()
    command.run(main)
