"""Whether a written dataset is still what its manifest says."""

import os
import pathlib

from corruptions.write import checks, folders, manifests, npy
from corruptions.write.files import WriteError


def verify(folder: str | os.PathLike, *, everything: bool = False) -> list[str]:
    """Compares the files of a dataset that `write_dataset` wrote with its manifest.

    Files of the size and time of change that they were left with are compared in four blocks (or
    images) of each severity, drawn anew each time; others as a whole with their sha256. Nothing is
    changed: `python -m corruptions.write` with the flags of before writes again what is wrong.

    Args:
      folder: of the dataset.
      everything: compare all files with their sha256.

    Returns:
      A line for each file or severity that is wrong: missing, changed, foreign, or not written yet.

    Raises:
      FileNotFoundError: there is no manifest.
      WriteError: the manifest is damaged.
    """
    folder = pathlib.Path(folder)
    manifest = manifests.load(folder)
    if manifest is None:
        raise FileNotFoundError(f"expected a dataset of corruptions.write, with {manifests.NAME}, in {folder}")
    try:
        return _problems(folder, manifest, everything)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        path = folder / manifests.NAME
        raise WriteError(
            f"{path} is not a readable manifest ({error!r}); move it away or use another folder"
        ) from error


def _problems(folder, manifest, everything):
    known = checks.load(folder)
    form = npy if manifest["layout"] == "npy" else folders
    damaged = npy.damaged_labels(folder, manifest) if form is npy else []
    lines = []
    for name, entry in manifest["corruptions"].items():
        if len(entry["written"]) < len(entry["severities"]):
            lines.append(f"{folder} is not written to its end ({name})")
        damaged += form.damages(folder, manifest, entry, known, everything)
    return lines + [damage.line for damage in damaged]
