"""Makes a store (`data.imagenet.store`) of ImageNet or ImageNet-100: decodes and resizes each image once.

The same command continues after a kill: finished shards are kept. The source is a tree of class folders, or a tfds
`imagenet2012` in array_record format. It has classes, the number of entries of each split, and pieces: functions that a
worker process calls to read some encoded images. An entry of tfds may belong to a class that is left out; only reading
it tells.
"""

import errno
import functools
import importlib.metadata
import io
import json
import math
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from corruptions.files import Digest, contained, digest_of_json, remove_parts
from corruptions.reading import pictures
from data import decode, tfds_source, tree
from data.image_folder import check_damaged
from data.imagenet import store
from data.imagenet.store import Encoded, class_stride, tree_stride
from runtime import files, workdirs
from runtime.log import bar

_PLAN = "plan.json"
_TFDS = "imagenet2012"
_TFDS_SPLITS = {"train": "train", "test": "validation"}
_READ = 32  # records of tfds at a time


class PrepareError(RuntimeError):
    """The store cannot be written with these settings, or not now; finished shards are kept."""


class Job(NamedTuple):
    """One shard to make: its file, a function that yields its images, their side and shorter side (`decode.sides`), and whether
    the orientation in EXIF data turns them.
    """

    path: Path
    piece: Callable[[], Iterator[store.Encoded]]
    image_size: int
    short: int
    turn: bool


def prepare(
    name: str,
    source: str | os.PathLike,
    data_dir: str | os.PathLike,
    *,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    workers: int | None = None,
    shard_images: int = 1024,
    max_damaged: float = 0.01,
    test_fraction: float = 0.1,
    again: Iterable[str] = (),
    turn: bool = False,
) -> Path:
    """Makes, or continues, the store of `name` below `data_dir` and returns its folder.

    Args:
      name: "imagenet100" or "imagenet".
      source: root of a tree {train,val}/class/*, or a folder of tfds with imagenet2012.
      data_dir: folder to write `name`/... in.
      image_size, resize: see `data.load`.
      train_size: side of training images that are cut at random later, the largest centre square; None is image_size.
      workers: processes; None is one for each core this process may use.
      shard_images: approximate number of images in a shard (a killed run loses at most one shard per worker).
      max_damaged: fraction of unreadable images of a split above which preparing stops; below it they are left out and
        listed in damaged.txt.
      test_fraction: for a flat tree, see `data.image_folder`.
      again: names of shards that are made again; nothing is removed from a store of other settings.
      turn: turn images by the orientation in their EXIF data; by default pixels stay as stored.

    Raises:
      PrepareError: no space, or a folder that cannot be written or is in use.
      WorkdirError: the folder holds a store of other settings.
      FileNotFoundError: the source is not there.
      ValueError: the source has other classes than expected, too many images are damaged, or an argument is wrong.
    """
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    if workers < 1 or shard_images < 1:
        raise ValueError(f"expected workers and shard_images >= 1, found {workers} and {shard_images}")
    sides = decode.sides(image_size, train_size, resize)
    opened = open_source(name, source, test_fraction)
    made_from = {
        "dataset": name,
        "source": opened.identity,
        "sides": sides,
        "preprocess": decode.description(sides),
        "pillow": importlib.metadata.version("pillow"),
        "shard_images": shard_images,
    }
    if turn:
        made_from |= {"turn": True, "preprocess": f"{made_from['preprocess']}, turned by EXIF data"}
    path = store.folder(data_dir, name, image_size, train_size, resize, turn)
    try:
        (path / "shards").mkdir(parents=True, exist_ok=True)
        with files.locked(path):
            remove_parts(path / "shards")
            refusal = f"{path} was begun with other settings or another source; remove it, or use the same"
            workdirs.claim(path / _PLAN, made_from, refusal)
            for file in again:
                store.discard_shard(contained(path / "shards", file))
            jobs = _jobs(opened, path / "shards", sides, shard_images, turn)
            records = _make(jobs, opened, path, workers, max_damaged)
            orientations = pictures.Orientations(turn)
            orientations.found.update(*(shard.get("orientations", ()) for part in records.values() for shard in part))
            orientations.warn(source, "--turn")
            store.finish(path, name, opened.class_names, made_from, records)
    except OSError as error:
        message = str(error) if isinstance(error, BlockingIOError) else f"cannot make the store {path}: {error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            kept = "Finished shards are kept: free space, then repeat the command"
            message = f"{path}: the disk is full ({error.strerror}). {kept}"
        raise PrepareError(message) from error
    return path


def prepare_and_verify(name: str, source: str | None, data_dir: str, *, verify: bool = False, **options: Any) -> Path:
    """Prepares a store if there is a source; with `verify` compares every file with its sha256.

    Damaged shards are made again from the source. Arguments as of `prepare`; the source may be None. Returns the
    folder. Raises ValueError where files are damaged without a source to mend them from, or there is neither source nor
    `verify`.
    """
    if source is None and not verify:
        raise ValueError(f"preparing {name} needs --source, the root of the ImageNet tree or a tfds folder; found none")
    sizes = options["image_size"], options["train_size"]
    path = store.folder(data_dir, name, *sizes, options.get("resize", "crop"), options.get("turn", False))
    mend = source is not None and (path / store.META).exists()
    if source is not None and not (verify and mend):
        prepare(name, source, data_dir, **options)
    if verify and (wrong := store.verify(path)):
        if source is None:
            raise ValueError(store.complaint(path, wrong))
        prepare(name, source, data_dir, again=wrong, **options)
    return path


class Source(NamedTuple):
    """A source of a store."""

    class_names: tuple[str, ...]  # in WordNet order
    stride: int  # one in `stride` entries is used, on average
    sizes: dict[str, int]  # {split: number of entries}
    identity: dict[str, Any]  # JSON-ready facts that decide the pixels, wherever the files lie
    piece: Callable[[str, int, int], Callable[[], Iterator[Encoded]]]  # (split, start, stop) -> yields these images


def open_source(name: str, source: str | os.PathLike, test_fraction: float = 0.1) -> Source:
    """Opens the source of dataset `name`: a tree's root, tfds's data_dir, or its imagenet2012/VERSION.

    Raises FileNotFoundError where none exists, or tfds has another file format; ValueError where there are not 1,000
    classes (or 100, for imagenet100).
    """
    root = Path(source).expanduser()
    folder = root if (root / "dataset_info.json").exists() else tfds_source.newest(root / _TFDS)
    if folder is not None:
        return _of_tfds(name, folder)
    return _of_tree(name, tree.find_root(root), test_fraction)


def _of_tree(name, root, test_fraction):
    tree.check_fraction(test_fraction)
    classes, splits = tree.scan(root, tree_stride(name, root), test_fraction, 0)
    listing = Digest()
    for split, items in splits.items():
        for path, label, _ in items:
            line = [split, path.relative_to(root).as_posix(), tree.size_and_time(path)[0], label]
            listing.add(f"{json.dumps(line)}\n")

    def piece(split, start, stop):
        return functools.partial(iter, [(str(path), label, str(path)) for path, label, _ in splits[split][start:stop]])

    sizes = {split: len(items) for split, items in splits.items()}
    return Source(tuple(classes), 1, sizes, {"kind": "tree", "listing_sha256": str(listing)}, piece)


def _of_tfds(name, folder):
    tfds_source.check_format(folder, "tfds converts it with tfds.builder(..., file_format='array_record')")
    names = tfds_source.class_names(folder, 1000)
    if list(names) != sorted(names):
        raise ValueError(f"{folder}: expected label names that are WordNet IDs in order, found {names[:3]} ...")
    stride = class_stride(name, len(names), folder)
    sizes = {split: len(_records(folder, theirs)) for split, theirs in _TFDS_SPLITS.items()}
    files = [(path.name, path.stat().st_size) for path in sorted(folder.glob("*.array_record*"))]
    identity = {"kind": "tfds", "version": folder.name, "listing_sha256": digest_of_json(files)}

    def piece(split, start, stop):
        return functools.partial(_read_records, folder, _TFDS_SPLITS[split], start, stop, stride)

    return Source(names[::stride], stride, sizes, identity, piece)


def _read_records(folder, split, start, stop, stride):
    """Yields records start .. stop - 1 of a split, of every stride-th class."""
    records = _records(folder, split)
    for begin in range(start, stop, _READ):
        positions = range(begin, min(begin + _READ, stop))
        for position, record in zip(positions, records.__getitems__(list(positions))):
            label, rest = divmod(int(record["label"]), stride)
            if rest == 0:
                yield f"{split} record {position}", label, io.BytesIO(record["image"])


_records = functools.lru_cache(maxsize=2)(tfds_source.records)


def _jobs(source, folder: Path, sides: dict[str, tuple[int, int]], shard_images: int, turn: bool):
    """Lists the shards of each split, {split: [Job]}."""
    step, jobs = shard_images * source.stride, {}
    for split in store.SPLITS:
        size = source.sizes[split]
        pieces = [source.piece(split, start, min(start + step, size)) for start in range(0, size, step)]
        jobs[split] = [
            Job(folder / f"{split}-{i:05d}.npy", piece, *sides[split], turn) for i, piece in enumerate(pieces)
        ]
    return jobs


def _make(jobs, source, path: Path, workers: int, max_damaged: float) -> dict[str, list[dict]]:
    """Makes the missing shards; returns {split: records of all its shards, in order}."""
    records = {job.path: store.read_record(job.path) for shards in jobs.values() for job in shards}
    missing = {split: [job for job in shards if records[job.path] is None] for split, shards in jobs.items()}
    numbers = {split: math.ceil(source.sizes[split] / source.stride) for split in jobs}
    _check_space(path, jobs, missing, numbers)
    done = sum(record["seen"] for record in records.values() if record)
    options = {"initial": done, "desc": f"preparing {path.parent.name}", "smoothing": 0.05}
    with bar("image", total=sum(numbers.values()), **options) as shown:
        for split, shards in jobs.items():
            damaged = [line for job in shards if (record := records[job.path]) for line in record["damaged"]]
            check_damaged(split, damaged, numbers[split], max_damaged)
            for job, record in _run(missing[split], workers):
                records[job.path] = record
                damaged += record["damaged"]
                check_damaged(split, damaged, numbers[split], max_damaged)
                shown.set_postfix_str(f"{split}, {len(damaged)} damaged", refresh=False)
                shown.update(record["seen"])
    return {split: [records[job.path] for job in shards] for split, shards in jobs.items()}


def _check_space(path, jobs, missing, numbers) -> None:
    """Raises PrepareError when the missing shards do not fit the disk."""
    shares = {split: len(shards) / max(1, len(jobs[split])) for split, shards in missing.items()}
    sides = {split: jobs[split][0].image_size for split, share in shares.items() if share}
    needed = sum(3 * side**2 * shares[split] * numbers[split] for split, side in sides.items())
    free = shutil.disk_usage(path).free
    if needed * 1.01 > free:
        number = sum(map(len, missing.values()))
        raise PrepareError(
            f"{path}: expected {needed / 1e9:.1f} GB of free space for {number} shards, found {free / 1e9:.1f} GB"
        )


def _run(jobs: list[Job], workers: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    if workers == 1 or len(jobs) < 2:
        yield from ((job, _make_shard(job)) for job in jobs)
        return
    # Fresh processes, not forks: the caller may have threads (JAX has).
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), context, initializer=_end_with_parent) as pool:
        try:
            for job, record in _bounded(pool, jobs, 2 * workers):
                for file in (job.path, job.path.with_suffix(".json")):
                    files.put(file)  # a worker wrote it, and workers upload nothing
                yield job, record
        except BrokenProcessPool as error:
            raise PrepareError("a worker process was killed (out of memory?); use fewer --workers") from error
        finally:
            pool.shutdown(cancel_futures=True)


def _bounded(pool, jobs: Iterable[Job], ahead: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Hands over at most `ahead` jobs at a time, so that a million paths need not wait in a pipe."""
    running, waiting = {}, iter(jobs)
    while True:
        while len(running) < ahead and (job := next(waiting, None)):
            running[pool.submit(_make_shard, job)] = job
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


def _make_shard(job: Job) -> dict[str, Any]:
    return store.write_shard(job.path, job.piece(), job.image_size, job.short, job.turn)


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed, which would otherwise wait for work for ever."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
