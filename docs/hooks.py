"""The hooks of MkDocs beside mkdocs.yml: pages that lie outside of docs/, links that follow them,
the list of corruptions, the addresses of the project.

A page links to files of the checkout, as GitHub reads it. Links to other pages of the site are made
to fit; a link to any other file of the checkout becomes its name, for the site has no source; one
to a file that does not exist stays, and fails the strict build.
"""

import functools
import inspect
import io
import os
import pathlib
import posixpath
import re
import tomllib

from mkdocs.structure.files import File
from PIL import Image

import corruptions

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTSIDE = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
OUTSIDE |= {path: path for path in (f"benchmarks/results/{p.name}" for p in ROOT.glob("benchmarks/results/*.md"))}
ADDRESSES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
_LINK = re.compile(
    r"(?<!\!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)|"
    r"!\[(?P<alt>[^\]]*)\]\((?P<image>[^)\s]+)\)"
)


def on_files(files, config):
    """Adds the pages that lie outside of docs/ and the list of all corruptions."""
    for page, path in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    files.append(File.generated(config, "reference/list.md", content=list_of_corruptions()))
    for name, picture in thumbnails().items():
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=85)
        files.append(File.generated(config, f"reference/thumbnails/{name}.jpg", content=content.getvalue()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Rewrites the links of a page, see above, and puts the addresses of pyproject.toml in."""
    for word, name in (("CLONE_ADDRESS", "Repository"), ("HOME_PAGE", "Homepage")):
        markdown = markdown.replace(word, ADDRESSES[name])
    return rewrite_links(markdown, page.file.src_uri)


def on_page_content(html, page, config, files):
    """Removes the dash that mkdocstrings writes even before a returned value without a name."""
    return re.sub(r'(<li class="doc-section-item field-body">)\s*\N{EN DASH}\s*', r"\1", html)


def rewrite_links(markdown, page):
    """Rewrites the Markdown of a page, so that its links lead to pages of the site.

    Args:
      markdown: text whose links are relative to the file's own place in the checkout.
      page: the page, relative to the site's root.
    """
    folder = posixpath.dirname(OUTSIDE.get(page, f"docs/{page}"))

    def rewritten(link):
        path = link["path"] or link["image"]
        if re.match(r"[a-z]+:|/", path):
            return link[0]
        target = posixpath.normpath(posixpath.join(folder, path))
        on_site = _ON_SITE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        if on_site is None:
            return link["text"] if (ROOT / target).exists() else link[0]
        new = os.path.relpath(on_site, posixpath.dirname(page) or ".")
        return link[0].replace(f"({path}", f"({new}", 1)

    return _LINK.sub(rewritten, markdown)


_ON_SITE = {path: page for page, path in OUTSIDE.items()}


GALLERIES = (  # of analysis.gallery, by the benchmark that each shows; the first that shows a corruption gives its picture
    *("imagenet_c", "imagenet_c_extra", "noc_candidates", "cbar_candidates", "laion_c", "optics", "optics_release"),
    *("libero_plus_noise", "robodepth"),
)


@functools.cache
def thumbnails():
    """Cuts {corruption: picture at a middle severity} out of the galleries in docs/images."""
    return {name: cells[-1] for benchmark in reversed(GALLERIES) for name, cells in cells_of(benchmark).items()}


def cells_of(benchmark):
    """Cuts {corruption: (clean picture, picture at a middle severity)} out of one gallery, as `analysis.gallery` lays it
    out: lines of eight with names below, the clean picture first; or a row for each corruption, the clean picture first.
    """
    sheet = Image.open(ROOT / f"docs/images/{benchmark}.png").convert("RGB")
    names, gap = corruptions.names(benchmark), 2

    def cut(left, top, side):
        return sheet.crop((left, top, left + side, top + side))

    if benchmark == "cbar_candidates":
        side, lines = sheet.width // 8 - gap, -(-(len(names) + 1) // 8)
        places = [(k % 8 * (side + gap), k // 8 * (sheet.height // lines)) for k in range(len(names) + 1)]
        return {name: (cut(*places[0], side), cut(*place, side)) for name, place in zip(names, places[1:])}
    severities, header = len(corruptions.severities(names[0])), 20
    side = (sheet.height - header) // len(names) - gap
    columns = [sheet.width - (severities + 1 - j) * (side + gap) for j in (0, 1 + severities // 2)]
    tops = [header + i * (side + gap) for i in range(len(names))]
    return {name: tuple(cut(left, top, side) for left in columns) for name, top in zip(names, tops)}


def list_of_corruptions():
    """Makes the page of all benchmarks and corruptions, each with a picture, its parameters and the text of its two
    halves.
    """
    halves = (
        "`sample` draws the parameters of one image, `apply` uses them and draws nothing; x is the image, in [0, 1]."
    )
    lines = ["# All corruptions", "", halves, ""]
    for benchmark in corruptions.benchmarks():
        lines += [f"- `{benchmark}`: {', '.join(f'`{name}`' for name in corruptions.names(benchmark))}"]
    lines += [""]
    for corruption in map(corruptions.get, corruptions.names()):
        sources = "; ".join(dict.fromkeys(p.source for p in corruption.parameters))
        levels = isinstance(corruption.scale, corruptions.Levels)
        scale = f"levels 1 to {corruption.scale.count}" if levels else "a fraction of its range"
        lines += [f"## {corruption.qualified_name}", "", f"*{corruption.family}*, {scale}", ""]
        if corruption.qualified_name in thumbnails():
            picture, alt = f"thumbnails/{corruption.qualified_name}.jpg", corruption.name.replace("_", " ")
            lines += [f'<img src="{picture}" alt="{alt}" width="96" height="96" loading="lazy">', ""]
        lines += ["**sample**", "", inspect.getdoc(corruption.sampler), ""]
        lines += ["**apply**", "", inspect.getdoc(corruption.applier), ""]
        for title, listed in (
            ("severity parameters", corruption.severity_parameters),
            ("random parameters", corruption.random_parameters),
        ):
            lines += [f"**{title}** " + "; ".join(f"`{p.name}`: {p.unit}" for p in listed), ""] if listed else []
        if corruption.fixed:
            lines += [f"Its benchmark fixes the options {', '.join(f'`{option}`' for option in corruption.fixed)}.", ""]
        if corruption.padding is None:
            lines += ["`corrupt_each` compiles it for each size of image.", ""]
        if not corruption.per_channel:
            lines += [f"Takes 1 to 4 channels, not more: it {corruption.mixes}.", ""]
        if corruption.moves:
            follow = "has a map of coordinates" if corruption.mapper else "has no map of coordinates"
            lines += [f"It {corruption.moves}, and {follow}.", ""]
        lines += [f"Source: {sources}." if sources else "", ""]
    return "\n".join(lines)
