"""Prints a compiler's estimates for programs on a chip that this machine lacks, as a Markdown table.

    pip install -e '.[study,compile-tpu]'
    python -m benchmarks.compiled --target=v5e                                      # all corruptions
    python -m benchmarks.compiled --target=v5e --names imagenet_c/fog --size=32 --batch=1024
    python -m benchmarks.compiled --target=v5e --programs=training                  # or schemes, evaluation
    python -m benchmarks.compiled --target=v5e --programs=training --names resnet18:224:256:1x1 --kernels=40
    JAX_OPTIMIZATION_LEVEL=O1 python -m benchmarks.compiled --target=v5e            # compiled in less time

All numbers are by the compiler's model; nothing runs on a chip, nothing is measured.
"""

from runtime import command  # isort: skip

import functools
import math

import jax

import corruptions
from benchmarks.compiled import hlo, programs
from benchmarks.compiled.chips import TARGETS
from corruptions import augment
from tests.reference.photographs import crops

LEGEND = """Compiled for a described chip, run on none: all numbers are by the compiler's model, none is measured. Numbers of one batch on
one chip. `compile CPU s`: of all the compiler's threads; `loop trips`: inner loops count in each trip of outer ones (after `<=` a loop
may end earlier); `gathers`: scatters too; `traffic`: bytes of the kernels, in units of reading and writing the batch as uint8;
`images/s by the model`: {model}; `roofline`: the kernels'
traffic at {bandwidth:.0f} GB/s or the products at {peak:.0f} TFLOP/s; `costliest operations`: parts of the cycles, or of the traffic."""


def row(target, measured, images, pixels=0):
    """Makes {column: cell} of a program on so many images, of which it reads and writes `pixels` each."""
    costs, flops = measured.costs, measured.flops
    bound = "" if measured.operations["exact"].all() else "<= "
    shares = hlo.costliest(measured.operations, ["source"])["share"][:3]
    return {
        "compile CPU s": f"{measured.compile_seconds:.1f}",
        "temporaries MiB/image": f"{measured.temporaries / images / 2**20:.2f}",
        "kernels": f"{costs['kernels']:,.0f}",
        "loop trips": f"{bound}{costs['trips']:,.0f}",
        "gathers": f"{costs['gathers']:,.0f}",
        "collectives": f"{costs['collectives']:,.0f}",
        "traffic": f"{costs['traffic'] / images / (6 * pixels):,.1f}" if pixels else "-",
        "images/s by the model": f"{images / measured.seconds:,.0f}",
        "roofline images/s": f"{images / max(costs['traffic'] / target.bandwidth, flops / target.peak):,.0f}",
        "of the peak": f"{100 * flops / measured.seconds / target.peak:.1f} %",
        "costliest operations": "; ".join(
            f"{name} {100 * part:.0f} %" for name, part in shares.items() if part >= 0.05
        ),
    }


def chips(name):
    """Reads (models at once, chips for each) from the end of a name, `:1x4`; (1, 1) where it names none."""
    at_once, _, each = name.rpartition(":")[2].partition("x")
    return (int(at_once), int(each)) if at_once.isdecimal() and each.isdecimal() else (1, 1)


def main():
    parser = command.Arguments(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--programs", choices=("corruptions", "schemes", *programs.NETWORKS), default="corruptions")
    parser.add_argument("--size", type=int, default=224, help="side of the images of corruptions and schemes")
    parser.add_argument("--batch", type=int, default=128, help="images of corruptions and schemes")
    parser.add_argument("--names", nargs="+", help="programs; default: all of their kind")
    parser.add_argument("--kernels", type=int, default=0, help="print that many of each program's costliest kernels")
    flags = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    target, sized = TARGETS[flags.target], flags.programs not in programs.NETWORKS
    level = jax.config.jax_optimization_level.replace("UNKNOWN", "")
    print(
        f"# {flags.programs.capitalize()} compiled for {target.kind}"
        f"{f', {flags.size}x{flags.size}, batch {flags.batch}' if sized else ''}"
        f"{f', optimization level {level}' if level else ''}, JAX {jax.__version__}, {target.compiler()}\n"
    )
    print(LEGEND.format(model=target.model, bandwidth=target.bandwidth / 1e9, peak=target.peak / 1e12))
    corruptions.laion_c.use_bank(crops(5000))
    listed, header = {"corruptions": corruptions.names(), "schemes": augment.names()} | programs.NETWORKS, True
    for name in flags.names or [name for name in listed[flags.programs] if math.prod(chips(name)) in target.topologies]:
        build = functools.partial(programs.build, flags.programs, name, flags.size, flags.batch)
        try:
            measured = programs.measure(target, build, *chips(name))
        except jax.errors.JaxRuntimeError as error:
            print(f"| {name} | not compiled: {' '.join(str(error).split())[:160].replace('|', '/')} |", flush=True)
            continue
        cells = row(target, measured, flags.batch if sized else int(name.split(":")[2]), flags.size**2 * sized)
        if header:
            print(f"\n| program | {' | '.join(cells)} |\n{'|---' * (len(cells) + 1)}|")
        header = False
        print(f"| {name} | {' | '.join(cell.replace('|', '/') for cell in cells.values())} |", flush=True)
        if flags.kernels:
            print(hlo.costliest(measured.operations, ["source", "result"])[: flags.kernels].to_string())


if __name__ == "__main__":
    with command.errors():
        main()
