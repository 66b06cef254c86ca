"""A row for each compiled program in a Markdown file, which is also the record that a run continues from."""

import pathlib
import statistics
from typing import Any

from runtime.chips.costs import Costs
from runtime.chips.targets import Target
from runtime.files import write_atomically

COLUMNS = (
    *("program", "compile CPU s", "temporaries MiB/image", "kernels", "loop trips", "gathers", "collectives"),
    *("images/s by the model", "roofline images/s", "of the peak", "costliest operations"),
)
# What every corruption is to keep on one TPU v5e, at 224 x 224 in batches of 128: (column, bound)
BARS = (("images/s by the model", 5_000), ("loop trips", 64), ("temporaries MiB/image", 4), ("compile CPU s", 15))
MEDIAN = 100_000
LEGEND = """Compiled for a described chip, run on none: all numbers are by the compiler's model, none is measured. Of one batch on one
chip: `compile CPU s` of all the compiler's threads; `kernels`, `loop trips` (inner loops count in each trip of outer ones; after
`<=` a loop may end earlier), `gathers` (and scatters) and `collectives` that are carried out; `images/s by the model`:
{model}. `roofline`: what
the kernels' traffic at {bandwidth:.0f} GB/s and the products at {peak:.0f} TFLOP/s (`of the peak`: their part) would leave, whichever
is less; products in a loop count once, cycles and traffic in every trip. `costliest operations`: the end of their names in the source, with their part of the cycles."""


def row(
    target: Target, costs: Costs, seconds: float, temporaries: int, flops: float, images: int, batches: int
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
    """Reads the rows of a table with this title: {program: cells}; none of another or no table."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[0] != f"# {title}":
        return {}
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return {name: rest for name, *rest in cells if name != COLUMNS[0]}


def write(path: pathlib.Path, title: str, command: str, target: Target, rows: dict[str, list[str]], bars: bool) -> None:
    """Writes the table, and below it what falls short of the bars, if these are meant for it."""
    legend = LEGEND.format(model=target.model, bandwidth=target.bandwidth / 1e9, peak=target.peak / 1e12)
    lines = [
        f"# {title}",
        "",
        f"Made by `{command}`.",
        legend,
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    write_atomically(path, "\n".join(lines + (_summary(rows) if bars else [])) + "\n")


def _summary(rows: dict[str, list[str]]) -> list[str]:
    values = {name: _values(cells) for name, cells in rows.items() if cells[0] != "-"}
    if not values:
        return []
    rate = BARS[0][0]
    median = statistics.median(found[rate] for found in values.values())
    short = {}
    for name, found in values.items():
        missed = [
            f"{column} {found[column]:,.6g}" for column, bound in BARS if not _keeps(column, found[column], bound)
        ]
        if missed:
            short[name] = ", ".join(missed)
    wanted = ", ".join(f"{column} {'>=' if column == rate else '<='} {bound:,}" for column, bound in BARS)
    return [
        "",
        f"{len(values) - len(short)} of {len(values)} keep all of: {wanted}. Median {median:,.0f} images/s (wanted: {MEDIAN:,}).",
        "",
        *(f"- {name}: {text}" for name, text in short.items()),
    ]


def _keeps(column, found, bound):
    return found >= bound if column == BARS[0][0] else found <= bound


def _values(cells: list[str]) -> dict[str, Any]:
    numbers = dict(zip(COLUMNS[1:], cells))
    return {column: float(numbers[column].removeprefix("<= ").replace(",", "")) for column, _ in BARS}
