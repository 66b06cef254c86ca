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
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    places = [lines[0].index(name) for name in names]
    return [tuple(line[place] for place in places) for line in lines[1:]]


def continued(
    out: str, top: str, header: Sequence[str], names: Sequence[str], measure: Callable[[str], Sequence[object]]
) -> list[list[str]]:
    """Measures the rows that a table lacks; each is printed, and written to the file at once.

    Args:
      out: Markdown file to write or to continue; "" only prints.
      top: text above the table, which tells machine and sizes; a file with another one is refused.
      header: titles of the columns.
      names: first cells of the rows.
      measure: gives the other cells of a row.

    Returns:
      The cells of all rows.

    Raises:
      ValueError: the file holds something else.
    """
    path, empty = pathlib.Path(out), f"{top}\n{markdown(header, [])}"
    text = path.read_text() if out and path.exists() else empty
    if not text.startswith(empty):
        raise ValueError(
            f"expected measurements of this machine and size in {out}, found others: remove it, or give another --out"
        )
    lines = [line for line in text.removeprefix(empty).splitlines() if line.startswith("| ")]
    rows = {cells[0]: cells for cells in ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)}
    for name in names:
        if name not in rows:
            rows[name] = [name, *map(str, measure(name))]
            print(*rows[name], sep=" | ", flush=True)
            if out:
                write_atomically(path, f"{top}\n{markdown(header, [rows[n] for n in names if n in rows])}")
    return [rows[name] for name in names]
