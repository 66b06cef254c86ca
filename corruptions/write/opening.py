"""The source that a command line names: a file of arrays, a folder or a dataset of tfds."""

import pathlib
from typing import Any

import numpy as np

from corruptions.write import sources
from corruptions.write.sources import Source


def open_source(
    name: str,
    *,
    labels: str | None = None,
    split: str = "test",
    data_dir: str | None = None,
    preprocess: str = "none",
    size: int | None = None,
    limit: int | None = None,
) -> Source:
    """Opens `FILE.npz` (arrays images and labels), `FILE.npy`, a folder root/class/* or `tfds:NAME`.

    Args:
      name: of the source.
      labels: FILE.npy with the labels of a FILE.npy.
      split, data_dir: of a tfds source.
      preprocess, size: of a folder or tfds source, see `sources.from_folder`.
      limit: only the first so many images.

    Raises:
      ValueError: a flag that does not fit, or a file that is none of arrays.
      FileNotFoundError, ModuleNotFoundError: as `sources.from_folder` and `from_tfds`.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"expected a --limit of at least 1, found {limit}")
    if name.startswith("tfds:"):
        name = name.removeprefix("tfds:")
        return sources.from_tfds(name, split=split, data_dir=data_dir, preprocess=preprocess, size=size, limit=limit)
    path = pathlib.Path(name).expanduser()
    if path.suffix not in (".npy", ".npz"):
        return sources.from_folder(path, preprocess=preprocess, size=size, limit=limit)
    if preprocess != "none" or size is not None:
        raise ValueError("arrays are written as they are: expected no --preprocess and no --size")
    if path.suffix == ".npz":
        arrays = _load(path)
        content = arrays.keys() if isinstance(arrays, dict) else {"a single one"}
        if not {"images", "labels"} <= content:
            raise ValueError(f"{path}: expected arrays images and labels, found {', '.join(content)}")
        pictures, classes = arrays["images"], arrays["labels"]
    elif labels is None:
        raise ValueError(f"expected --labels=FILE.npy beside --source={name}, found none")
    else:
        pictures, classes = _load(path, mmap_mode="r"), _load(labels)
    return sources.from_arrays(pictures[:limit], classes[:limit])


def _load(path: Any, **options: Any) -> Any:
    """The array of an .npy file, or {name: array} of an .npz file; ValueError for anything else."""
    try:
        content = np.load(path, **options)
        return dict(content) if isinstance(content, np.lib.npyio.NpzFile) else content
    except FileNotFoundError:
        raise
    except Exception as error:  # of a dozen types, by the byte that is wrong
        raise ValueError(f"{path}: expected a NumPy file, found one that cannot be read ({error})") from error
