"""Tables of the benchmarks in Markdown: written after each row, and continued by the same command."""

import pathlib
from collections.abc import Callable, Iterable, Sequence

from runtime.files import write_atomically


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes a table."""
    head, *lines = ("| " + " | ".join(map(str, line)) + " |\n" for line in (header, *rows))
    return "".join([head, "|" + "---|" * len(header) + "\n", *lines])


def columns_of(text: str, *names: str) -> list[tuple[str, ...]]:
    """Reads columns of the table of a page by their titles, a tuple a row."""
    header, *rows = _cells(text)
    return [tuple(row[header.index(name)] for name in names) for row in rows]


def _cells(text):
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]


def continued(
    out: str, top: str, header: Sequence[str], names: Sequence[str], measure: Callable[[str], Sequence[object]]
) -> list[list[str]]:
    """Measures the rows that a table lacks; each is printed, and written to the file at once.

    Args:
      out: Markdown file to write or to continue; "" only prints.
      top: text above the table, which tells machine and sizes; a file with another one is refused (ValueError).
      header: titles of the columns.
      names: first cells of the rows; `measure` gives the others.

    Returns:
      The cells of all rows.
    """
    path, empty = pathlib.Path(out), f"{top}\n{markdown(header, [])}"
    text = path.read_text() if out and path.exists() else empty
    if not text.startswith(empty):
        raise ValueError(
            f"expected measurements of this machine and size in {out}, found others: remove it, or give another --out"
        )
    rows = {cells[0]: cells for cells in _cells(text.removeprefix(empty))}
    for name in names:
        if name not in rows:
            rows[name] = [name, *map(str, measure(name))]
            print(*rows[name], sep=" | ", flush=True)
            if out:
                write_atomically(path, f"{top}\n{markdown(header, [rows[n] for n in names if n in rows])}")
    return [rows[name] for name in names]
