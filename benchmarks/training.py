"""Training of networks: the compiled step, the loop around it, the share of the peak, PyTorch beside it in the same run.

    python -m benchmarks.training --threads=1 --peer_python=PEER --out=benchmarks/results/train_cpu.md
    python -m benchmarks.training --networks=cifar_resnet18:32:32,resnet18:224:8 --out=training.md

A network is NAME:SIDE:BATCH. A call is a block of steps (forward, backward, SGD with momentum and weight decay) on random
uint8 images in memory; `loop` is `training.loop.train` on such images, which also gathers, mirrors and reports. PEER is a
Python with torch: the same network at side 32 in both memory layouts, in turn with ours; the faster one counts. `--threads`
is the number of cores of this process and of the peer: waiting threads of the peer spin, so that with other work on the machine
only CPU seconds with one thread compare. A row is written when it is measured.
"""

from runtime import command  # isort: skip

import os

import jax
from absl import flags

from benchmarks import timing
from benchmarks.device import works

HEADER = (
    *("network", "type", "images/s", "CPU images/s", "loop images/s"),
    *("half corrupted", "GFLOP/image", "of the peak", "MiB"),
)


def parsed(text: str) -> tuple[str, int, int]:
    """Reads NAME:SIDE:BATCH; raises ValueError for another text."""
    name, *numbers = text.split(":")
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise ValueError(f"expected NAME:SIDE:BATCH, found {text!r}")
    return name, int(numbers[0]), int(numbers[1])


def cells(text, peer, dtype, given):
    """Measures a row: the cells after its name."""
    name, side, batch = parsed(text)
    flops = timing.training_flops(name, side, works.CLASSES.get(side, 10))
    number = max(1, min(64, round(given.gigaflops * 1e9 / (flops * batch))))
    compared = {"": works.Training(name, side, batch, number, dtype)}
    for layout in ("NCHW", "NHWC") if peer and side == 32 else ():
        request = {"model": name, "batch": batch, "steps": number, "channels_last": layout == "NHWC"}
        compared[layout] = lambda turn, request=request: peer.spend(**request)
    times = timing.measure(compared, given.rounds)
    cores = 1, len(os.sched_getaffinity(0))
    rate = {key: [number * batch * n / s for n, s in zip(cores, found.median)] for key, found in times.items()}
    half = works.Training(name, side, batch, number, dtype, given.corruption)
    corrupted = timing.measure({"": half}, given.rounds)[""]
    loop = works.loop(name, side, batch, number, dtype)["images_per_second"]
    share = works.share_of_peak(rate[""][0], name, side, compared[""].devices).get("share_of_peak", float("nan"))
    found = [dtype, *(f"{value:,.0f}" for value in (*rate[""], loop, number * batch / corrupted.median.wall))]
    found += [f"{flops / 1e9:.3g}", f"{100 * share:.0f} %", f"{compared[''].compiling['memory_bytes'] / 2**20:,.0f}"]
    if peer:
        best = [max(rate[key][clock] for key in rate if key) for clock in (0, 1)] if len(rate) > 1 else None
        ratios = [f"{own / other:.2f}" for own, other in zip(rate[""], best)] if best else ["-"] * 2
        found += [*(f"{value:,.0f}" for value in best or ()), *([] if best else ["-"] * 2), *ratios]
    return [*found, f"{os.getloadavg()[0]:.1f}"]


def main(argv):
    given = command.given(argv)
    for text in given.networks:
        parsed(text)  # a wrong name is refused before the first row
    threads, peer = timing.on_cores(given, "networks.py")
    dtype = given.dtype or ("float32" if jax.default_backend() == "cpu" else "bfloat16")
    top = (
        f"# Speed of training\n\n{timing.title()}; {threads} threads. Peer: {peer.hello['version'] if peer else 'none'}. Medians of the "
        f"repetitions; `CPU`: images in a second of each thread's CPU time times the threads; `half corrupted`: half of each batch under "
        f"{given.corruption}; `of the peak`: {timing.peak_flops()[1]}; `load`: load average, other work included.\n"
    )
    header = [*HEADER, *(timing.PEER_COLUMNS if peer else ()), "load"]
    timing.continued(given.out, top, header, given.networks, lambda text: cells(text, peer, dtype, given))


if __name__ == "__main__":
    networks = ["small_resnet:32:128", "small_resnet:32:256", "cifar_resnet18:32:128", "wrn_40_2:32:128"]
    flags.DEFINE_list("networks", networks, "NAME:SIDE:BATCH, separated by commas.")
    flags.DEFINE_string("dtype", "", "float32 or bfloat16; empty follows the device.")
    flags.DEFINE_integer("threads", 0, "Cores to use; 0 for all.", lower_bound=0)
    flags.DEFINE_float("gigaflops", 500, "Work of a call.")
    flags.DEFINE_integer("rounds", 0, "Repetitions; 0: 20, or fewer once they take a second.", lower_bound=0)
    flags.DEFINE_string("corruption", "imagenet_c/zoom_blur", "Corruption of half of each batch.")
    flags.DEFINE_string("peer_python", "", "Python with torch; empty leaves the peer out.")
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")
    command.run(main)
