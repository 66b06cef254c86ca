"""The parity report: how far our ImageNet-C is from the original, at every severity.

    python -m benchmarks.parity --shared=FOLDER --out=docs/parity.md
    python -m benchmarks.parity --sections=errors --workdir=runs/MODEL --peer_python=PATH --out=docs/parity.md

FOLDER/golden holds figures and pictures made by the original code. `--workdir` is a workdir of train.py on CIFAR-10,
`--peer_python` a Python that has imagecorruptions-imaug. The file of `--data` keeps the numbers: the report takes the
sections that are not measured now from there, and says which were never measured. With --names of some corruptions the rows of the
others stay, and the report says which rows are of another revision. Needs the extra `dev`.
"""

from runtime import command  # isort: skip

import functools
import json
import pathlib
import platform
import re
import sys

import jax
from absl import app, flags

from benchmarks.parity import measures, report
from corruptions.scoring.conditions import expand
from runtime import artifacts, meshes
from runtime.files import write_atomically
from tests.reference.imagenet_c import expected

_PATHS = r"(--(?:shared|peer_python|peer_images|data_dir|workdir|data|out))[= ]\S+"
_SECTIONS = ("pixels", "golden", "features", "errors")
_SHARED = flags.DEFINE_string("shared", "", "Folder with golden/; empty leaves out the sections golden and features.")
_WORKDIR = flags.DEFINE_string("workdir", "", "Workdir of a trained model; empty leaves out the section errors.")
_PEER = flags.DEFINE_string("peer_python", "", "Python with imagecorruptions-imaug, for the section errors.")
_SECTION = flags.DEFINE_list("sections", list(_SECTIONS), "Sections to measure now.")
_TABLES = flags.DEFINE_list("tables", list(expected.SIDES), "Severity tables of the section pixels.")
_NAMES = flags.DEFINE_list("names", ["imagenet_c", "imagenet_c_extra"], "Corruptions or benchmarks.")
_NUMBER = flags.DEFINE_integer("number", 1000, "Test images of the section errors.", lower_bound=2)
_DATA_DIR = flags.DEFINE_string("data_dir", "", "Folder of the datasets; empty: the folder in the workdir's config.")
_PEER_IMAGES = flags.DEFINE_string("peer_images", "runs/peer_images", "Folder of the peer's images.")
_DATA = flags.DEFINE_string("data", "benchmarks/results/parity.json", "The numbers, between runs.")
_OUT = flags.DEFINE_string("out", "docs/parity.md", "The report.")


def measure(section, names, kept):
    """Measures {part: rows} of a section; rows of other names in `kept` stay. None when it cannot be run."""
    golden = pathlib.Path(_SHARED.value) / "golden"
    if section == "pixels":
        return kept | {t: kept.get(t, {}) | measures.pixels(names, t) for t in _TABLES.value}
    if section == "errors":
        if not (_WORKDIR.value and _PEER.value):
            return None
        images = pathlib.Path(_PEER_IMAGES.value)
        found = measures.error_rates(_WORKDIR.value, names, _PEER.value, _NUMBER.value, images, _DATA_DIR.value)
        if all(kept.get(key) == value for key, value in found.items() if key != "rows"):
            found["rows"] = kept["rows"] | found["rows"]
        return found
    if not _SHARED.value:
        return None
    compare = measures.golden_pixels if section == "golden" else measures.golden_features
    return {str(size): kept.get(str(size), {}) | compare(names, golden, size) for size in (32, 224)}


def record():
    """Records the origin of the numbers of a run."""
    origin = artifacts.provenance()
    return {
        # The record leaves out this machine's folders.
        "command": re.sub(_PATHS, r"\1=...", " ".join(["python -m benchmarks.parity", *sys.argv[1:]])),
        "revision": origin["git_revision"],
        "versions": artifacts.versions(("jax", "numpy", "pillow", "scipy")),
        "machine": f"{origin['device']}, {platform.machine()}, {platform.system()}",
    }


def main(argv):
    del argv
    unknown = set(_SECTION.value) - set(_SECTIONS)
    if unknown:
        raise app.UsageError(f"expected --sections among {', '.join(_SECTIONS)}, found {', '.join(sorted(unknown))}")
    meshes.enable_compilation_cache()
    names = expand(_NAMES.value)
    file = pathlib.Path(_DATA.value)
    data = json.loads(file.read_text()) if file.exists() else {}
    for section in _SECTIONS:
        if section not in _SECTION.value:
            continue
        found = measures.renewed(
            section, data.get(section), record(), names, functools.partial(measure, section, names)
        )
        if found is not None:
            data[section] = found
            write_atomically(file, json.dumps(data, indent=1) + "\n")
    page = pathlib.Path(_OUT.value)
    write_atomically(page, report.report(data, page.read_text() if page.exists() else ""))
    print(f"{_OUT.value}: {jax.device_count()} device, sections {', '.join(data)}")


if __name__ == "__main__":
    command.run(main)
