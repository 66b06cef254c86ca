"""Data that the processes of one run read, each from its own disk: compared before anything is computed from them.

Arrays that are read whole have a sha256. Of other files names are compared, and size and content of 2,000, which all
processes choose alike. A single process compares nothing.
"""

import heapq
import os
from collections.abc import Iterable
from pathlib import Path

from corruptions.files import content_sha256, digest_of
from data import decode
from data.dataset import Dataset, same_images
from runtime import distributed

_SAMPLED = 2000
_COPY = "copy the data of one host to all"


def check_dataset(dataset: Dataset) -> None:
    """Raises ProcessError in all processes where images, labels or classes differ; it names the first file that differs.

    Needs the sha256 of the arrays, or a `data.dataset.sample`, in the provenance. Drawn images are compared as
    `data.dataset.same_images` does.
    """
    sources = [dataset.provenance, dataset.provenance.get("mixed_in", {})]
    of_main = distributed.from_main(lambda: sources)
    digests = {"class_names": list(dataset.class_names)}
    for place, source, first in zip(("", "mixed_in."), sources, of_main):
        for split in ("train", "test"):
            known, other = source.get(split, {}), first.get(split, {})
            known = other if same_images(other, known) else known
            digests[f"{place}{split}"] = known.get("sha256") or known.get("sample")
    digests["listed"] = dataset.provenance.get("listed")
    check(dataset.name, digests, [source["source"] for source in sources if "source" in source])


def check(what: str, digests: dict, folders: Iterable[str | os.PathLike]) -> None:
    """Raises ProcessError where the JSON-ready digests of some data differ; below `folders` the first such file is sought."""
    if distributed.all_equal(digests):
        return
    for folder in filter(os.path.isdir, folders):
        check_files(what, folder, _below(folder))
    distributed.check_same({f"{what}, {name}": value for name, value in digests.items()})


def check_files(what: str, root: str | os.PathLike, paths: Iterable[str | os.PathLike]) -> None:
    """Raises ProcessError in all processes where files differ in their names below `root`, or some in their content."""
    if not distributed.several():
        return
    by_name = {decode.printable(os.path.relpath(path, root)): Path(path) for path in paths}
    distributed.check_lines(f"files of {what}", sorted(by_name), _COPY)
    sample = heapq.nsmallest(_SAMPLED, by_name, key=digest_of)
    lines = [f"{n} ({by_name[n].stat().st_size} bytes, content {content_sha256([by_name[n]])[:12]})" for n in sample]
    distributed.check_lines(f"content of {what}", sorted(lines), _COPY)


def _below(folder):
    """Lists the visible files below a folder; links to folders are followed once."""
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if (real := os.path.realpath(parent)) in seen:
            folders.clear()
            continue
        seen.add(real)
        paths = (os.path.join(parent, name) for name in names if not name.startswith("."))
        yield from filter(os.path.isfile, paths)
