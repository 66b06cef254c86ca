"""A joint table as Markdown, CSV and LaTeX."""

import pathlib

from analysis.errors import summary
from analysis.errors.joint import Column, Joint
from analysis.errors.summary import NONE, TITLES
from analysis.lines import write_rows
from analysis.rounding import with_error
from analysis.tables import CLEAN
from runtime.files import write_atomically

HEADER = (*summary.HEADER, "best")
_TITLES = {
    "imagenet_c": "ImageNet-C",
    "imagenet_noc": "ImageNet-NOC",
    "imagenet_c_bar": "C-bar",
    "cifar10_c_bar": "C-bar",
}


def markdown(table: Joint) -> str:
    """Writes the table and its caption; what holds for other conditions than its reference has a
    †.
    """
    head = ["model", *(_title(column, table) for column in table.columns)]
    lines = [f"| {' | '.join(head)} |", "|".join(["", "---", *["---:"] * len(table.columns), ""])]
    for model in table.models:
        cells = [_cell(table, model, column, "**{}**", " ± ", "†") for column in table.columns]
        lines.append(f"| {' | '.join([model, *cells])} |")
    return "\n".join([*lines, "", *(sentence + "  " for sentence in _sentences(table))]).rstrip() + "\n"


def latex(table: Joint) -> str:
    """Writes a table of LaTeX with booktabs, caption included."""
    head = ["model", *(_escaped(_title(column, table)) for column in table.columns)]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    for model in table.models:
        cells = [_cell(table, model, column, r"\textbf{{{}}}", r" $\pm$ ", r"$^\dagger$") for column in table.columns]
        lines.append(" & ".join([_escaped(model), *(cell.replace("\N{MINUS SIGN}", "$-$") for cell in cells)]) + r" \\")
    caption = " ".join(_escaped(sentence) for sentence in _sentences(table))
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def write(folder: pathlib.Path, table: Joint) -> list[pathlib.Path]:
    """Writes table.md, table.csv and table.tex into a folder; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"table.{kind}" for kind in ("md", "csv", "tex")]
    write_atomically(paths[0], markdown(table))
    rows = [
        (model, *table.cells[model, column][1:-1], int(table.best.get(column) == model))
        for column in table.columns
        for model in table.models
        if (model, column) in table.cells
    ]
    write_rows(paths[1], HEADER, rows, " ".join(table.caption).replace("|", "/"))
    write_atomically(paths[2], latex(table))
    return paths


def _title(column: Column, table: Joint) -> str:
    benchmark, severities, measure = column
    if benchmark == CLEAN:
        return "clean error"
    kinds = {other for name, other, _ in table.columns if name == benchmark}
    kind = f" ({severities})" if len(kinds) > 1 else ""
    name = _TITLES.get(benchmark, benchmark)
    return f"{name}{kind} minus ImageNet-C" if measure == "gap" else f"{name}{kind} {TITLES[measure]}"


def _cell(table, model, column, bold, between, mark):
    if (model, column) not in table.cells:
        return "\N{EN DASH}"
    cell = table.cells[model, column]
    text = with_error(cell.mean, cell.se).replace("\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", between)
    text += f" ({cell.std:.2g})" if cell.std == cell.std else ""
    text += mark if cell.mismatch != NONE else ""
    return bold.format(text) if table.best.get(column) == model else text


def _sentences(table):
    marked = sorted({cell.mismatch for cell in table.cells.values()} - {NONE})
    return [*table.caption, *(["† Measured under other conditions than the reference."] if marked else [])]


def _escaped(text):
    for plain, written in (("\\", r"\textbackslash "), *((c, "\\" + c) for c in "&%$#_{}")):
        text = text.replace(plain, written)
    special = {
        "~": r"\textasciitilde ",
        "^": r"\textasciicircum ",
        "±": r"$\pm$",
        "†": r"$^\dagger$",
        "\N{MINUS SIGN}": "$-$",
    }
    return "".join(special.get(letter, letter) for letter in text)
