"""Draws what compilers say of the corruptions at 224: rates on a TPU v5e, traffic on an H200.

    python -m benchmarks.compiled.picture       # reads the tables in benchmarks/results

Writes docs/images/compiled_corruptions.png. By the compilers' models, nothing measured.
"""

import pathlib

from matplotlib.figure import Figure

from analysis.figures import BLUE, GREY, ORANGE, save
from benchmarks.compiled import table
from benchmarks.compiled.__main__ import RESULTS

OUT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "images" / "compiled_corruptions"
PANELS = (  # table, its bars, column, title
    (
        "compiled_tpu_v5e_corruptions_224",
        ("tpu_v5e", 224, 128),
        table.RATE,
        "TPU v5e, batch 128: images/s by its cycles",
    ),
    (
        *("compiled_h200_corruptions_224_batch256", ("h200", 224, 256), "traffic"),
        "H200, batch 256: traffic, in reading and writing the images",
    ),
)


def draw(folder: pathlib.Path) -> Figure:
    """Draws the columns of `PANELS` side by side, corruptions in the order of the first."""
    values = [numbers(folder / f"{name}.md", column) for name, _, column, _ in PANELS]
    names = sorted(values[0], key=values[0].get)
    figure = Figure(figsize=(9, 0.13 * len(names) + 1), layout="constrained")
    for axes, found, (_, bars, column, title) in zip(figure.subplots(1, 2, sharey=True), values, PANELS, strict=True):
        bars = table.BARS[bars]
        bound = dict(bars.each)[column]
        kept = [table.keeps(column, found.get(name, bound), bound) for name in names]
        axes.barh(names, [found.get(name, 0) for name in names], color=[BLUE if good else ORANGE for good in kept])
        axes.axvline(bound, color="black", linewidth=0.8)
        axes.axvline(bars.median[1], color=GREY, linestyle="--", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_title(f"{title}\nline: bar for each, dashed: for the median", fontsize=7)
        axes.tick_params(labelsize=5)
        axes.margins(y=0.01)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def numbers(path: pathlib.Path, column: str) -> dict[str, float]:
    """Reads {program: value} of a column of a table, without programs that were refused."""
    title = path.read_text().partition("\n")[0].removeprefix("# ")
    place = table.COLUMNS.index(column) - 1
    rows = table.read(path, title).items()
    return {name: table.value_of(cells[place]) for name, cells in rows if cells[0] != "-"}


if __name__ == "__main__":
    print(*save(draw(RESULTS), OUT, formats=("png",), dpi=160))
