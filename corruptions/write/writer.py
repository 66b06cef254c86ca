"""Corrupts a whole dataset, block by block (one corruption at one severity), and hands the blocks to a layout."""

import contextlib
import itertools
import math
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from corruptions import files
from corruptions.core import checks, dispatch, forks
from corruptions.core.batch import corrupt
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.keys import named_key, prng, seed_key
from corruptions.core.many_sizes import corrupt_each
from corruptions.files import WriteError
from corruptions.write import manifests, revisions, sources
from corruptions.write.layouts import LOG, Folders, Npy
from corruptions.write.progress import Background
from corruptions.write.shards import Parquet, WebDataset

LAYOUTS = {"npy": Npy, "folders": Folders, "parquet": Parquet, "webdataset": WebDataset}

_TURN = "turn=True of the source"
_READ = 64  # images of many sizes decoded at a time
_ACCELERATOR_VALUES = 2**25  # values in a batch: ten thousand images of 32x32, two hundred of 224x224


def write_dataset(
    out: str | os.PathLike,
    source: sources.Source | tuple[np.ndarray, np.ndarray],
    *,
    corruptions: str | Sequence[str] = ("imagenet_c", "imagenet_c_extra"),
    severities: Any = None,
    layout: str = "npy",
    jpeg_quality: int | None = 85,
    seed: int = 0,
    table: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    batch_size: int | None = None,
    progress: bool | None = None,
    verify: bool = False,
) -> pathlib.Path:
    """Writes a corrupted copy of a dataset in the form of CIFAR-10-C or of ImageNet-C, or as shards.

    Image i under a corruption is exactly `corrupt(fold_in(key(seed), crc32(name)), images, name, severity)[i]`, with the
    qualified name (`imagenet_c/fog`) and i the position in the source, whatever the batch size; of images that keep many
    sizes (`from_folder(..., size="keep")`), the same of `corrupt_each`. Severities 1..5 of a
    benchmark that selects levels (`cifar10_c_bar`) stand for those levels (`corruptions.severities`).

    The same call continues a run that was killed. It skips blocks (one corruption at one severity) that are complete,
    and writes damaged files again (see `corruptions.write.verify`). Where the code of a corruption changed since, its first
    image is corrupted again and must have the pixels that were written. A later call may add corruptions. Files get their
    names when they are complete.

    Args:
      out: the folder to write; made when missing.
      source: `(images, labels)`, arrays uint8[N, H, W, 3] and int[N], or a `Source`
        (`corruptions.write.from_arrays`, `from_folder`, `from_tfds`).
      corruptions: names of corruptions and of benchmarks, or one.
      severities: severities of every corruption, or a mapping name -> severities; "random" draws one per image, of a
        benchmark that selects levels one of these. By
        default every severity of the benchmark, every level, or the fractions 0, 1/4 .. 1 of a range.
      layout: `npy`: `<corruption>.npy` uint8[S N, H, W, 3] severity by severity, and `labels.npy` [S N]; `folders`:
        `corruption/severity/class/name.JPEG`; `parquet` and `webdataset`: `corruption/severity/00000.parquet` (or
        `.tar`), 10,000 images each, and a dataset card.
      jpeg_quality: Pillow's 1..95 with optimised Huffman tables and 4:2:0, for all layouts but `npy` (85 as published);
        None writes lossless PNG.
      seed: seed of the random draws.
      table: severity table of the ImageNet-C corruptions (`cifar`, `tiny`, `imagenet`, `inception`) and of C-bar's
        (`cifar`, `imagenet`); by default chosen from the image size, and `imagenet` for images that keep many sizes;
        `by_size` takes the one nearest to the shorter side of each of these.
      options: corruption name -> its options (see `get(name).options`), such as calibrated ranges; those of corruptions
        that are not asked for have no effect.
      batch_size: images on the device at a time; by default a size that suits it.
      progress: True, False, or None for a progress bar (tqdm) if there is a terminal and tqdm.
      verify: compare all existing files with their sha256, also files of unchanged size and time.

    Returns:
      The path of `manifest.json`: settings, seed, versions, commands, counts and sha256 of the files.

    Raises:
      WriteError: the folder is not writable, in use, full, holds foreign files, or a dataset with other settings or pixels.
      ValueError, TypeError: an argument is not as described.
    """
    forks.refuse_forked()
    if not os.fspath(out):
        raise Refused("out", "the path of a folder to write", "an empty one", "out='.' writes here")
    checks.one_of("layout", "a layout", layout, LAYOUTS)
    if layout != "npy" and jpeg_quality is not None and jpeg_quality not in range(1, 96):
        raise Refused("jpeg_quality", "a jpeg_quality 1..95 or None for PNG", repr(jpeg_quality))
    if batch_size is not None and batch_size < 1:
        raise Refused("batch_size", "a batch_size of at least 1", batch_size)
    seed_key(seed)  # refuses a value that is no seed
    folder = files.local(out)  # before images are read
    if not isinstance(source, sources.Source):
        if not isinstance(source, tuple | list) or len(source) != 2:
            raise RefusedType("source", "(images, labels) or a Source to write", type(source).__name__)
        source = sources.from_arrays(*source)
    if source.many_sizes and layout == "npy":
        raise Refused("layout", "the layout folders, parquet or webdataset for images that keep their sizes", "npy")
    first = np.shape(source.read(range(1))[0])
    checks.image_shape(first)
    shape = None if source.many_sizes else first
    identity = {
        "layout": layout,
        "seed": int(seed),
        "key": "fold_in(fold_in(key(seed), crc32(qualified name)), position)",
        "prng": prng(),
        "jpeg_quality": None if layout == "npy" or jpeg_quality is None else int(jpeg_quality),
        "source": dict(source.description),
        "images": len(source),
        "image_shape": shape and [int(side) for side in shape],
        "class_names": list(source.class_names),
    }
    planned = manifests.entries(corruptions, severities, options or {}, table, shape, LAYOUTS[layout].suffix)
    if shape is None and (tables := {entry["table"] for entry in planned.values() if entry["table"]}):
        LOG.info("severity table of images of all sizes: %s", ", ".join(sorted(tables)))
    manifests.draw_once(planned, first)  # what a sampler refuses is refused before the manifest holds it
    with files.lock(folder):
        manifest = _open(folder, manifests.new(identity, planned))
        with _explained(folder):
            images = source if source.many_sizes else _materialised(folder, source, shape, progress)
            form = LAYOUTS[layout](folder, manifest, source, verify)
            _write(form, images, list(planned), batch_size, progress, verify)
            if source.many_sizes:
                source.orientations.warn("source", _TURN)
    return folder / manifests.NAME


def _open(folder, requested):
    """Returns the manifest to continue, or the requested one where the folder is empty."""
    stored = manifests.load(folder)
    if stored is None:
        foreign = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if foreign:
            raise WriteError(
                f"expected an empty folder or one written by this program (with {manifests.NAME}), found {folder} "
                f"holding {', '.join(foreign[:5])}{' ...' if len(foreign) > 5 else ''}"
            )
    return manifests.merged(stored, requested) if stored else requested


def _materialised(folder, source, shape, progress):
    """Returns the images as one array; decodes encoded ones once, into a file without a name, which ends with the process."""
    if not source.encoded:
        return source.read(range(len(source)))
    with tempfile.TemporaryFile(dir=folder) as file, files.bar(len(source), "decoding", progress) as counter:
        files.reserve(file, len(source) * math.prod(shape))
        images = np.memmap(file, np.uint8, "r+", shape=(len(source), *shape))
        for start in range(0, len(source), 512):
            positions = range(start, min(start + 512, len(source)))
            images[start : positions.stop] = source.read(positions)
            counter.update(len(positions))
    source.orientations.warn("source", _TURN)
    return images


def _write(layout, images, names, batch_size, progress, verify):
    manifest = layout.manifest
    layout.start()
    todo = {name: layout.todo(manifest["corruptions"][name]) for name in names}
    revisions.refuse_other_pixels(layout, images, names)
    _check_space(layout, [manifest["corruptions"][name] for name in names if todo[name]])
    blocks = sum(map(len, todo.values()))
    if blocks:
        manifest["runs"].append(manifests.run_record())
    manifest["complete"] = False
    manifests.save(layout.folder, manifest)
    requested = sum(len(manifest["corruptions"][name]["severities"]) for name in names)
    verified = f"{layout.verified} files verified, " if verify else ""
    LOG.info("%s: %s%d of %d blocks to write", layout.folder, verified, blocks, requested)
    many = isinstance(images, sources.Source)
    size, parts = (batch_size or _READ, _each) if many else (batch_size or _batch_size(images), _corrupted)
    notes = revisions.Notes(len(images))
    with (
        files.bar(blocks * len(images), "corrupting", progress) as counter,
        Background(3 * jax.local_device_count()) as disk,
    ):

        def save(name, entry, severity, start, corrupted, count):
            corrupted = corrupted if many else np.asarray(corrupted)[:count]
            notes.add(name, entry, severity, start, corrupted)
            layout.write(entry, severity, start, corrupted)
            counter.update(count)

        for name, missing in todo.items():
            entry, started = manifest["corruptions"][name], time.perf_counter()
            for severity in missing:
                disk.run(layout.begin, entry, severity)
                for start, count, corrupted in parts(images, name, entry, severity, manifest["seed"], size):
                    disk.run(save, name, entry, severity, start, corrupted, count)
                disk.run(layout.finish, entry, severity)
            if missing:
                rate = len(missing) * len(images) / (time.perf_counter() - started)
                LOG.info("%s: %d x %d images, %.3g images/s", name, len(missing), len(images), rate)
    entries = manifest["corruptions"].values()
    manifest["complete"] = all(len(entry["written"]) == len(entry["severities"]) for entry in entries)
    manifests.save(layout.folder, manifest)
    layout.close()


def _corrupted(images, name, entry, severity, seed, size):
    """Yields (start, count, corrupted batch on a device); the last batch is padded to the common shape."""
    key = named_key(seed, name)
    devices, options = jax.local_devices(), entry["options"]
    size = min(size, len(images))
    for turn, start in enumerate(range(0, len(images), size)):
        positions = np.minimum(np.arange(start, start + size), len(images) - 1)
        count = min(size, len(images) - start)
        part = images[start : start + count] if count == size else images[positions]
        part, index = jax.device_put((part, positions.astype(np.int32)), devices[turn % len(devices)])
        level = manifests.level(entry, severity)
        yield start, count, corrupt(key, part, name, level, index=index, **options)


def _each(source, name, entry, severity, seed, size):
    """Does the same as `_corrupted` for images of many sizes: yields (start, count, images); one program serves many sizes."""
    parts = (source.read(range(start, min(start + size, len(source)))) for start in range(0, len(source), size))
    images = itertools.chain.from_iterable(parts)
    found = corrupt_each(named_key(seed, name), images, name, manifests.level(entry, severity), **entry["options"])
    for start in range(0, len(source), size):
        few = list(itertools.islice(found, size))
        yield start, len(few), few


def _batch_size(images):
    number, (height, width, channels) = len(images), images.shape[1:]
    if jax.default_backend() != "cpu":
        target = max(1, _ACCELERATOR_VALUES // (height * width * channels))
        return -(-number // -(-number // target))  # batches of equal size, so that little is padding
    # On a CPU a padded image costs as much as any other: take only as many as all cores process at a time.
    return min(number, dispatch.cpu_batch(images.shape))


def _check_space(layout, entries):
    needed = sum(map(layout.missing_bytes, entries))
    free = shutil.disk_usage(layout.folder).free
    if needed > free:
        raise WriteError(f"{layout.folder} needs {needed / 1e9:.2f} GB more, {free / 1e9:.2f} GB are free")


@contextlib.contextmanager
def _explained(folder):
    """Turns errors of the operating system into a `WriteError` that says how to continue."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) or error.errno is None:
            raise
        what = "the disk (or quota) is full" if files.is_full(error) else "cannot write"
        raise WriteError(
            f"{what}: {error.strerror} ({error.filename or folder}). Complete blocks are kept: once this is solved, "
            "run the same command again and it continues"
        ) from error
