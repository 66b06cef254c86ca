"""HTML from Python values: elements whose text is escaped unless it is HTML already, and the page
around them.

The page's skeleton, style and script are the files of `analysis/report/page/`; all are put into the
one HTML file.
"""

import base64
import html
import pathlib
import string
from collections.abc import Iterable

_PAGE = pathlib.Path(__file__).parent / "page"
_EMPTY = {"br", "img", "input"}


class Html(str):
    """Text that is HTML already; everything else is escaped where it is put into an element."""


def escape(value: object) -> Html:
    """Escapes any value as text; `Html` stays as it is, None becomes nothing."""
    if isinstance(value, Html):
        return value
    return Html("" if value is None else html.escape(str(value)))


def tag(name: str, *children, **attributes) -> Html:
    """Makes one element.

    Args:
      name: of the element.
      *children: `Html`, or values shown as text; None shows nothing.
      **attributes: `class_` is written class and `aria_label` aria-label; None and False leave an
        attribute out, True writes it without a value.
    """
    text = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.removesuffix("_").replace("_", "-")
        text.append(f" {key}" if value is True else f' {key}="{html.escape(str(value))}"')
    inside = "".join(escape(child) for child in children)
    return Html(f"<{name}{''.join(text)}>" + ("" if name in _EMPTY else f"{inside}</{name}>"))


def join(parts: Iterable[object], separator: str = "") -> Html:
    """Joins the parts, escaped, one after the other."""
    return Html(escape(separator).join(escape(part) for part in parts))


def table(header: Iterable, rows: Iterable[Iterable], *, class_: str | None = None, label: str | None = None) -> Html:
    """Makes a table with a heading for each column; the first cell of a row is the row's heading.

    A cell is a value, or a pair of a value and the class of its cell.
    """
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col", class_=kind) for cell, kind in map(_cell, header))))
    lines = []
    for row in rows:
        (first, kind), *others = map(_cell, row)
        cells = [tag("th", first, scope="row", class_=kind), *(tag("td", cell, class_=kind) for cell, kind in others)]
        lines.append(tag("tr", *cells))
    return tag("div", tag("table", head, tag("tbody", *lines), class_=class_, aria_label=label), class_="scroll")


def _cell(cell):
    return cell if isinstance(cell, tuple) else (cell, None)


def data_uri(content: bytes, kind: str = "image/png") -> str:
    """Writes the bytes of a file as an address that holds them."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def section(identity: str, title: str, *children) -> Html:
    """Makes a numbered section (the style numbers them) with its heading."""
    return tag(
        "section", tag("h2", title, id=f"{identity}-title"), *children, id=identity, aria_labelledby=f"{identity}-title"
    )


def figure_files(*stems) -> Html:
    """Links to the PNG and PDF of figures in the folder `figures` beside the page."""
    links = [tag("a", f"{stem}.{kind}", href=f"figures/{stem}.{kind}") for stem in stems for kind in ("png", "pdf")]
    return tag("p", "For print: ", join(links, ", "), class_="files")


def missing(what: str, *command) -> Html:
    """Notes, in the place of a result that is not there, what it is and what to run to get it."""
    code = [tag("code", line) for line in command]
    return tag("p", what, " Run ", join(code, " and "), " and make this report again.", class_="missing")


def page(title: str, body: Html, **fields) -> Html | str:
    """Puts the whole document together.

    Args:
      title: of the document, text.
      body: `Html`.
      **fields: further fields of page/page.html, text or `Html`.
    """
    skeleton = string.Template((_PAGE / "page.html").read_text(encoding="utf-8"))
    # A closing tag within the script or style would end it; neither file has one.
    files = {name: Html((_PAGE / f"page.{name}").read_text(encoding="utf-8")) for name in ("css", "js")}
    return skeleton.substitute(
        title=escape(title), body=body, **files, **{key: escape(value) for key, value in fields.items()}
    )
