"""A row for each compiled program in a Markdown file, which is also the record that a run continues from."""

import pathlib
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from runtime.chips.costs import Costs
from runtime.chips.targets import Target
from runtime.files import write_atomically

COLUMNS = (
    *("program", "compile CPU s", "temporaries MiB/image", "kernels", "loop trips", "gathers", "collectives"),
    *("traffic", "images/s by the model", "roofline images/s", "of the peak", "costliest operations"),
)
RATE = "images/s by the model"
LEGEND = """Compiled for a described chip, run on none: all numbers are by the compiler's model, none is measured. Of one batch on one
chip: `compile CPU s` of all the compiler's threads; `kernels`, `loop trips` (inner loops count in each trip of outer ones; after
`<=` a loop may end earlier), `gathers` (and scatters) and `collectives` that are carried out; `traffic` of the kernels, in what reading
and writing the batch as uint8 takes; `images/s by the model`: {model}. `roofline`: what
the kernels' traffic at {bandwidth:.0f} GB/s and the products at {peak:.0f} TFLOP/s (`of the peak`: their part) would leave, whichever
is less; products in a loop count once, cycles and traffic in every trip. `costliest
operations`: the end of their names in the source, with their part of the cycles."""


class Bars(NamedTuple):
    """What corruptions are to keep: (column, bound) of every one, and of the median."""

    each: tuple[tuple[str, float], ...]
    median: tuple[str, float]


BARS = {  # (target, size, batch) -> bars
    ("tpu_v5e", 224, 128): Bars(
        ((RATE, 5_000), ("loop trips", 64), ("temporaries MiB/image", 4), ("compile CPU s", 15)), (RATE, 100_000)
    ),
    ("tpu_v5e", 32, 1024): Bars(((RATE, 100_000),), (RATE, 100_000)),
    ("h200", 224, 256): Bars((("temporaries MiB/image", 3), ("traffic", 30), ("compile CPU s", 6)), ("traffic", 20)),
}


def row(
    target: Target,
    costs: Costs,
    seconds: float,
    temporaries: int,
    flops: float,
    images: int,
    batches: int,
    pixels: int = 0,
) -> list[str]:
    """Makes the cells after the name.

    Args:
      target: the chip.
      costs: of the whole program.
      seconds: of compilation.
      temporaries: bytes.
      flops: of one batch.
      images: of one batch on one chip.
      batches: in the program.
      pixels: of an image that is read and written; 0 where none is written.
    """
    second = target.seconds(costs, flops * batches) / batches
    floor = max(costs.traffic / batches / target.bandwidth, flops / target.peak)
    bound = "" if costs.exact else "<= "
    costly = [f"{name} {100 * part:.0f} %" for name, part in list(costs.shares.items())[:3] if part >= 0.05]
    return [
        f"{seconds:.1f}",
        f"{temporaries / images / 2**20:.2f}",
        f"{round(costs.kernels / batches):,}",
        f"{bound}{round(costs.trips / batches):,}",
        *(f"{round(number / batches):,}" for number in (costs.gathers, costs.collectives)),
        f"{costs.traffic / batches / images / (6 * pixels):,.1f}" if pixels else "-",
        f"{images / second:,.0f}",
        f"{images / floor:,.0f}",
        f"{100 * flops / second / target.peak:.1f} %",
        "; ".join(costly).replace("|", "/"),
    ]


def failed(error: Exception) -> list[str]:
    """Makes the cells of a program that the compiler refused."""
    reason = " ".join(str(error).split())[:160].replace("|", "/")
    return ["-"] * (len(COLUMNS) - 2) + [f"not compiled: {reason}"]


def read(path: pathlib.Path, title: str) -> dict[str, list[str]]:
    """Reads the rows of a table with this title: {program: cells}; none of another or no table, no
    rows of other columns."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[0] != f"# {title}":
        return {}
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return {name: rest for name, *rest in cells if name != COLUMNS[0] and len(rest) == len(COLUMNS) - 1}


def write(
    path: pathlib.Path, title: str, command: str, target: Target, rows: dict[str, list[str]], bars: Bars | None
) -> None:
    """Writes the table, and below it what falls short of its bars, if it has some."""
    legend = LEGEND.format(model=target.model, bandwidth=target.bandwidth / 1e9, peak=target.peak / 1e12)
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    write_page(path, title, command, legend, COLUMNS, lines + (_summary(rows, bars) if bars else []))


def write_page(
    path: pathlib.Path, title: str, command: str, legend: str, columns: Sequence[str], lines: Sequence[str]
) -> None:
    """Writes a page: title, the command that makes it, legend, and a table of these lines."""
    head = [f"# {title}", "", f"Made by `{command}`.", legend, ""]
    head += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    write_atomically(path, "\n".join([*head, *lines]) + "\n")


def _summary(rows, bars):
    values = {name: dict(zip(COLUMNS[1:], cells)) for name, cells in rows.items() if cells[0] != "-"}
    if not values:
        return []
    short = {}
    for name, found in values.items():
        numbers = ((column, value_of(found[column]), bound) for column, bound in bars.each)
        missed = [f"{column} {number:,.6g}" for column, number, bound in numbers if not keeps(column, number, bound)]
        if missed:
            short[name] = ", ".join(missed)
    wanted = ", ".join(_bound(*bar) for bar in bars.each)
    column, _ = bars.median
    median = statistics.median(value_of(found[column]) for found in values.values())
    return [
        "",
        f"{len(values) - len(short)} of {len(values)} keep all of: {wanted}. "
        f"Median of {column}: {median:,.6g} (wanted: {_bound(*bars.median)}).",
        "",
        *(f"- {name}: {text}" for name, text in short.items()),
    ]


def keeps(column: str, found: float, bound: float) -> bool:
    """Says whether a value keeps a bound: rates are to be higher, all else lower."""
    return found >= bound if column == RATE else found <= bound


def _bound(column, bound):
    return f"{column} {'>=' if column == RATE else '<='} {bound:,}"


def value_of(cell: str) -> float:
    """Reads a number of a table."""
    return float(cell.removeprefix("<= ").replace(",", ""))
