"""Corrupted datasets on disk, published or written by `python -m corruptions.write`.

    CIFAR-10-C, CIFAR-10-C-bar    a folder of `<corruption>.npy` and `labels.npy`
    ImageNet-C, ImageNet-C-bar    `corruption/severity/class/image`
    Parquet, WebDataset           `corruption/severity/shard` and `manifest.json`
    cifar10_corrupted, imagenet2012_corrupted of TensorFlow Datasets, in array_record

    dataset = data.corrupted.open_corrupted("CIFAR-10-C")
    for corruption, severity in dataset.conditions():
        for images, labels in dataset.batches(corruption, severity, batch_size=256):
            ...

Memory holds one batch and the next.
"""

import importlib
import logging
import os
from pathlib import Path

from data.corrupted.dataset import Batch, CorruptedDataset, read_manifest
from runtime import files

__all__ = ["Batch", "CorruptedDataset", "open_corrupted"]

TFDS = ("cifar10_corrupted", "imagenet2012_corrupted")
_READERS = {"parquet": "CorruptedShards", "webdataset": "CorruptedShards", "npy": "CorruptedArrays"}


def open_corrupted(
    path_or_name: str | os.PathLike,
    *,
    data_dir: str | os.PathLike | None = None,
    threads: int | None = None,
    verify: bool = False,
) -> CorruptedDataset:
    """Opens a corrupted dataset; `batches` reads the images.

    Args:
      path_or_name: a folder of `.npy` files, a folder tree, shards that `corruptions.write` wrote, or a name of
        TensorFlow Datasets: `cifar10_corrupted`, `imagenet2012_corrupted`, or one condition of it,
        `cifar10_corrupted/brightness_1`.
      data_dir: the folder of tfds datasets; `$TFDS_DATA_DIR`, then ~/tensorflow_datasets, when None.
      threads: threads that decode image files; None is one per core.
      verify: compare all files that `corruptions.write` wrote with their sha256, not only those whose size or time
        changed. Published sets have no checksums.

    Raises:
      FileNotFoundError: the dataset or some of its files are missing; the message names the expected files.
      ValueError: the files do not fit together, are damaged, or the dataset was not written to its end.
    """
    path_or_name = files.local(path_or_name, "config.eval.stored")
    name, _, config = path_or_name.partition("/")
    # Modules are imported on demand: arrays must not wait for the import of tfds.
    if name in TFDS and not Path(path_or_name).exists():
        return importlib.import_module("data.corrupted.tfds").CorruptedTfds(name, config, data_dir, threads)
    path = Path(path_or_name).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(
            f"expected a folder, or one of the datasets {', '.join(TFDS)} of TensorFlow Datasets, found no {path}"
        )
    manifest = read_manifest(path, verify)
    if manifest is not None and manifest["image_shape"] is None:
        raise ValueError(
            f"{path}: expected images of one size, found many sizes (--size=keep); write it with --preprocess"
        )
    if manifest is None and verify:
        logging.warning("%s has no manifest: there are no checksums to verify it by", path)
    layout = manifest["layout"] if manifest is not None else "npy" if any(path.glob("*.npy")) else "folders"
    readers = importlib.import_module("data.corrupted.readers")
    return getattr(readers, _READERS.get(layout, "CorruptedFolders"))(path, manifest, threads)
