"""What MkDocs is told beyond mkdocs.yml: pages that lie outside of docs/, links that follow them,
the list of corruptions.

A page links to files of the checkout, as GitHub reads it. Links to other pages of the site are made
to fit; a link to any other file of the checkout becomes its name, for the site has no source; one
to a file that does not exist stays, and fails the strict build.
"""

import inspect
import os
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

import corruptions

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTSIDE = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
OUTSIDE |= {path: path for path in (f"benchmarks/results/{p.name}" for p in ROOT.glob("benchmarks/results/*.md"))}
_LINK = re.compile(
    r"(?<!\!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)|"
    r"!\[(?P<alt>[^\]]*)\]\((?P<image>[^)\s]+)\)"
)


def on_files(files, config):
    """Adds the pages that lie outside of docs/ and the list of all corruptions."""
    for page, path in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    files.append(File.generated(config, "reference/list.md", content=list_of_corruptions()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Rewrites the links of a page, see above."""
    return rewrite_links(markdown, page.file.src_uri)


def on_page_content(html, page, config, files):
    """Takes away the dash before a returned value without a name, which mkdocstrings puts there all
    the same.
    """
    return re.sub(r'(<li class="doc-section-item field-body">)\s*\N{EN DASH}\s*', r"\1", html)


def rewrite_links(markdown, page):
    """The Markdown of a page of the site with links as they are between pages of the site.

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


def list_of_corruptions():
    """Makes the page of all benchmarks, and of every corruption with its parameters and the text of its two halves."""
    lines = [
        "# All corruptions",
        "",
        "`sample` draws the parameters of one image, `apply` uses them and draws nothing; x is the image, in [0, 1].",
        "",
    ]
    for benchmark in corruptions.benchmarks():
        lines += [f"- `{benchmark}`: {', '.join(f'`{name}`' for name in corruptions.names(benchmark))}"]
    lines += [""]
    for corruption in map(corruptions.get, corruptions.names()):
        sources = "; ".join(dict.fromkeys(p.source for p in corruption.parameters))
        lines += [f"## {corruption.qualified_name}", "", f"*{corruption.family}*, {_scale(corruption.scale)}", ""]
        lines += ["**sample**", "", inspect.getdoc(corruption.sampler), ""]
        lines += ["**apply**", "", inspect.getdoc(corruption.applier), ""]
        lines += ["**parameters** " + "; ".join(f"`{p.name}`: {p.unit}" for p in corruption.parameters), ""]
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


def _scale(scale):
    return f"levels 1 to {scale.count}" if isinstance(scale, corruptions.Levels) else "a fraction of its range"
