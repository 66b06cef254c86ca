"""Tabulates where the cycles of one compiled program go, kernel by kernel.

    python -m benchmarks.compiled.cycles --target=tpu_v5e --programs=training resnet18:224:256:1x1

Writes benchmarks/results/compiled_TARGET_PROGRAMS_NAME.md, by the compiler's own estimates.
"""

import argparse
import collections
import pathlib
import re
from typing import NamedTuple

import jax

from benchmarks.compiled import programs
from benchmarks.compiled.__main__ import RESULTS
from benchmarks.compiled.table import write_page
from runtime.chips import costs, hlo, products
from runtime.chips.targets import TARGETS, Target

LISTED = 40
COLUMNS = ("kernel", "results", "in a step", "cycles", "of all", "products at the peak", "memory at its bandwidth")
LEGEND = """Compiled for a described chip, run on none: all numbers are by the compiler's model, none is measured. Cycles of one batch on
one chip ({clock:.1f} GHz), kernels of one source with the same results together. `products at the peak`: cycles of their convolutions and
matrix products at {peak:.0f} TFLOP/s; `memory at its bandwidth`: of what they read from and write to the large memory, at {bandwidth:.0f} GB/s.
A kernel is named by the end of its name in the source, that of one of the operations fused in it: `jvp()` is the forward,
`transpose(jvp())` the backward pass."""


class Cycles(NamedTuple):
    """Of kernels in one batch: how many there are, what the compiler estimates, what their products
    and their memory would take alone.
    """

    kernels: float = 0
    estimated: float = 0
    products: float = 0
    memory: float = 0

    def plus(self, other: "Cycles") -> "Cycles":
        """Adds those of other kernels."""
        return Cycles(*(one + another for one, another in zip(self, other)))


def by_kernel(program: hlo.Program, target: Target, batches: int) -> dict[tuple[str, str], Cycles]:
    """Adds up the cycles of kernels: {(source, results): of one batch}, the costliest first.

    Args:
      program: compiled for the target.
      target: whose compiler estimates cycles.
      batches: in the program.
    """
    found = collections.defaultdict(Cycles)
    for operation, times, _, source in program.executed():
        if operation.cycles:
            arithmetic = products.flops(program, operation) / target.peak
            memory = costs.traffic(program, operation) / target.bandwidth
            own = Cycles(1, operation.cycles, arithmetic * target.clock, memory * target.clock)
            key = source or operation.code, re.sub(r"\{[^}]*\}", "", operation.type).strip("()")
            found[key] = found[key].plus(Cycles(*(times / batches * value for value in own)))
    return dict(sorted(found.items(), key=lambda item: -item[1].estimated))


def table(found: dict[tuple[str, str], Cycles]) -> list[str]:
    """Writes the rows: all, those with and without products, then kernels by themselves."""
    whole = _sum(found.values())
    rows = [
        ("**all**", "", whole),
        ("**with products**", "", _sum(one for one in found.values() if one.products)),
        ("**without**", "", _sum(one for one in found.values() if not one.products)),
        *((source, results, one) for (source, results), one in list(found.items())[:LISTED]),
    ]
    if rest := list(found.values())[LISTED:]:
        rows.append((f"{len(rest)} others", "", _sum(rest)))
    return [
        f"| {name.replace('|', '/')} | {results} | {one.kernels:,.0f} | {one.estimated:,.0f} | "
        f"{100 * one.estimated / whole.estimated:.1f} % | {one.products:,.0f} | {one.memory:,.0f} |"
        for name, results, one in rows
    ]


def write(path: pathlib.Path, title: str, command: str, target: Target, rows: list[str]) -> None:
    """Writes the page."""
    legend = LEGEND.format(clock=target.clock / 1e9, peak=target.peak / 1e12, bandwidth=target.bandwidth / 1e9)
    write_page(path, title, command, legend, COLUMNS, rows)


def _sum(several):
    total = Cycles()
    for one in several:
        total = total.plus(one)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=[key for key, target in TARGETS.items() if target.clock], required=True)
    parser.add_argument("--programs", choices=tuple(programs.ROWS), default="training")
    parser.add_argument("name", help="MODEL:SIZE:IMAGES:MODELSxCHIPS")
    given = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    target = TARGETS[given.target]
    program = programs.build(given.programs, given.name, 0, 0, target.devices)
    compiled, _ = target.compile(target.lower(program.function, *program.args, **program.static))
    rows = table(by_kernel(hlo.parse(compiled.as_text()), target, program.batches))
    title = f"Cycles of {given.programs}, {given.name}, on a {target.kind}, JAX {jax.__version__}, {target.compiler()}"
    command = f"python -m benchmarks.compiled.cycles --target={given.target} --programs={given.programs} {given.name}"
    path = RESULTS / f"compiled_{given.target}_{given.programs}_{given.name.replace(':', '_')}.md"
    write(path, title, command, target, rows)
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
