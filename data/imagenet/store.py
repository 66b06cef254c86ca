"""The prepared form of a large dataset: shards of decoded images on disk, read as memory maps.

A store is a folder `<data_dir>/<name>/<image size>[-train<size>][-squash][-turned]` with

- `store.json`: classes, sizes, origin, and bytes and sha256 of every file; written last
- `train-labels.npy`, `train-index.npy`, and the same for test
- `shards/train-00000.npy`: uint8[n, H, W, 3] each, and beside it a record of the same name in JSON; an interrupted
  preparation continues from these records
- `damaged.txt`: the images that were left out, with the reason

Opening checks the size of every file and the hashes of labels and index. Pixels are compared with the checksum of their
block when they are first read (`data.blocks`); `verify` reads all of them.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from corruptions.files import digest_of
from corruptions.reading import pictures
from data import blocks, decode, tree
from data.dataset import Dataset, ShardedImages, Split, describe, limited, make_split
from data.image_folder import load_image_folder
from runtime import files
from runtime.log import bar

META = "store.json"
SPLITS = ("train", "test")
_FORMAT = 1
_COLUMNS = ("labels", "index")
_SHARD = {"file": str, "count": int, "bytes": int, "sha256": str, "blocks": {"images": int, "checksums": str}}
_RECORD = _SHARD | {"labels": [int], "positions": [int], "seen": int, "damaged": [str]}
_OF_SPLIT = {"size": int, "sha256": {str: str}, "shards": [_SHARD], "damaged": int, "image_size": int}
_SHAPE = {"format": int, "name": str, "class_names": [str], "splits": dict.fromkeys(SPLITS, _OF_SPLIT)}
_SHAPE["made_from"] = {"sides": {"test": [int]}}
_REWRITE = "remove it and repeat data.prepare, which rewrites it"

# (name for messages, label, path or open file of encoded bytes) of one image.
Encoded = tuple[str, int, str | BinaryIO]


def folder(
    data_dir: str | os.PathLike,
    name: str,
    image_size: int,
    train_size: int | None = None,
    resize: str = "crop",
    turn: bool = False,
) -> Path:
    """Returns the folder of a store, one for each pair of sizes, way to resize, and whether images are turned."""
    sizes = str(image_size) if train_size in (None, image_size) else f"{image_size}-train{train_size}"
    sizes += "" if resize == "crop" else f"-{resize}"
    return Path(data_dir).expanduser() / name / (f"{sizes}-turned" if turn else sizes)


def command(
    name: str,
    data_dir: str | os.PathLike,
    image_size: int,
    train_size: int | None = None,
    resize: str = "crop",
    turn: bool = False,
) -> str:
    """Returns the command that makes a store, or continues or mends it."""
    sizes = f"--image_size={image_size}" + ("" if train_size in (None, image_size) else f" --train_size={train_size}")
    sizes += "" if resize == "crop" else f" --resize={resize}"
    sizes += " --turn" if turn else ""
    return f"python -m data.prepare --dataset={name} --source=TREE --data_dir={data_dir} {sizes}"


def write_shard(
    path: Path, items: Iterable[Encoded], image_size: int, short: int, turn: bool = False
) -> dict[str, Any]:
    """Decodes the items in order to `path`, shards/NAME.npy, and returns the record written beside it.

    The record is written after the images, both atomically: where there is a record, there are the images. `image_size` and
    `short` as of `decode.square`; `turn` turns images by the orientation in their EXIF data.

    Returns:
      {"file", "count", "bytes", "sha256" (of the pixels), "blocks" (their checksums, see `data.blocks`), "labels": [count],
      "positions": [count] (place among the items), "seen" (number of items), "damaged": ["name (reason)", ...],
      "orientations": [names of files whose EXIF data hold one; none with `turn`]}.
    """
    labels, positions, damaged, orientations = [], [], [], pictures.Orientations(turn)
    seen = 0
    with files.writing(path) as file:
        images = blocks.Writer(file, (image_size, image_size, 3))
        for name, label, encoded in items:
            image = decode.read(encoded, image_size, short, name, orientations=orientations)
            if isinstance(image, str):
                damaged.append(image)
            else:
                images.append(image[None])
                labels.append(int(label))
                positions.append(seen)
            seen += 1
        images.finish()
        file.seek(0, 2)
        size = file.tell()
    record = {"file": path.name, "count": images.count, "bytes": size, "sha256": images.sha256}
    record |= {"labels": labels, "positions": positions, "seen": seen, "damaged": damaged}
    record["orientations"] = sorted(orientations.found)
    record["blocks"] = blocks.describe(files.read_array(path, mapped=images.count > 0))
    files.write_json(path.with_suffix(".json"), record)
    return record


def read_record(path: Path) -> dict[str, Any] | None:
    """Reads the record of a complete shard; None when it is absent or incomplete, or its file has another size."""
    try:
        record = files.read_json(path.with_suffix(".json"), shape=_RECORD)
        return record if path.stat().st_size == record["bytes"] else None
    except (OSError, ValueError):
        return None


def discard_shard(path: Path) -> None:
    """Removes a shard and its record, so that it is made again."""
    path.with_suffix(".json").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def finish(
    path: Path, name: str, class_names: Iterable[str], made_from: dict[str, Any], records: dict[str, list[dict]]
) -> None:
    """Writes store.json and the files beside it from {split: records of `write_shard`, in order}.

    `made_from` holds JSON-able facts about source and preprocessing; `class_names` names every label.
    """
    splits = {}
    for split, shards in records.items():
        # The index counts damaged images too, so that the others keep theirs when one is mended.
        begins = np.cumsum([0] + [shard["seen"] for shard in shards])
        index = [np.asarray(shard["positions"], np.int32) + begin for shard, begin in zip(shards, begins)]
        labels = [np.asarray(shard["labels"], np.int32) for shard in shards]
        hashes = {}
        for column, parts in zip(_COLUMNS, (labels, index)):
            array = np.concatenate([*parts, []]).astype(np.int32)
            files.write_array(path / f"{split}-{column}.npy", array)
            hashes[column] = digest_of(array)
        kept = [{key: shard[key] for key in _SHARD} for shard in shards]
        splits[split] = {"size": len(array), "sha256": hashes, "shards": kept}
        splits[split]["damaged"] = sum(len(shard["damaged"]) for shard in shards)
        splits[split]["image_size"] = made_from["sides"][split][0]
    damaged = [line for shards in records.values() for shard in shards for line in shard["damaged"]]
    files.write_atomically(path / "damaged.txt", "".join(f"{line}\n" for line in damaged))
    meta = {"format": _FORMAT, "name": name, "class_names": list(class_names), "made_from": made_from, "splits": splits}
    files.write_json(path / META, meta)


def load(
    path: Path,
    train_limit: int | None = None,
    test_limit: int | None = None,
    resize: str = "crop",
    turn: bool = False,
) -> Dataset:
    """Opens the dataset in a finished store; images are memory maps.

    Raises ValueError where its images became square in another way than `resize`, or were turned unlike `turn`, or a file is missing or damaged (named).
    """
    meta = read_meta(path)
    if (made := _resize(meta)) != resize:
        again = command(meta["name"], path.parents[1], *_sizes(meta), resize, turn)
        raise ValueError(
            f"{path}: expected images made with resize {resize!r}, found {made!r}. Move it away and prepare another "
            f"with:\n  {again}\nor read it with --config.dataset.resize={made}"
        )
    if _turned(meta) != turn:
        again = command(meta["name"], path.parents[1], *_sizes(meta), resize, turn)
        raise ValueError(
            f"{path}: expected images made with turn={turn}, found turn={not turn}. Prepare others with:\n  {again}\nor read it "
            f"with --config.dataset.turn={not turn}"
        )
    if wrong := {shard["file"]: line for shard in _shards(meta) if (line := _size_problem(path, shard))}:
        raise ValueError(complaint(path, wrong))
    splits, facts = {}, {}
    for name, limit in zip(SPLITS, (train_limit, test_limit)):
        whole, known = _split(path, meta, name, checked=True), meta["splits"][name]
        splits[name] = limited(whole, limit)
        # Pixels are hashed by shard: the sha256 of all these digests stands for the whole.
        hashes = {"image_shards": digest_of(np.array([s["sha256"] for s in known["shards"]], "S64")), **known["sha256"]}
        facts[name] = {**describe(splits[name], hashes if limit is None else None), "damaged": known["damaged"]}
    provenance = {"source": str(path), "format": "prepared store", "made_from": meta["made_from"], **facts}
    return Dataset(meta["name"], tuple(meta["class_names"]), splits["train"], splits["test"], provenance)


def read_meta(path: Path) -> dict[str, Any]:
    """Reads `store.json`; raises FileNotFoundError without a finished store, ValueError where it cannot be read."""
    try:
        meta = files.read_json(path / META, remedy=_REWRITE, shape=_SHAPE)
    except FileNotFoundError:
        raise FileNotFoundError(f"expected a finished store in {path}, found no {META}") from None
    if meta["format"] != _FORMAT:
        raise ValueError(f"{path / META}: expected format {_FORMAT}, found {meta['format']}; {_REWRITE}")
    return meta


def verify(path: Path) -> dict[str, str]:
    """Compares every file of a finished store with its sha256; returns {name of a damaged shard: reason}.

    Raises ValueError where labels or index differ.
    """
    meta = read_meta(path)
    shards = _shards(meta)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = pool.map(lambda shard: _size_problem(path, shard) or _hash_problem(path, shard), shards)
        lines = zip(shards, bar("shard", problems, total=len(shards), desc="verifying"))
        wrong = {shard["file"]: line for shard, line in lines if line}
    for name in SPLITS if not wrong else ():
        _split(path, meta, name)
    return wrong


def problems(path: Path) -> list[str]:
    """Compares every file as `verify` does; returns a line for each damaged one, with the command that mends it.

    Raises FileNotFoundError where there is no finished store.
    """
    try:
        wrong, again = verify(path), _again(path, read_meta(path))
    except ValueError as error:
        return [str(error)]
    return [f"{path / 'shards' / file}: {reason}; mend it with {again}" for file, reason in wrong.items()]


def recorded(path: Path) -> int:
    """Counts the shards that `problems` compares."""
    return len(_shards(read_meta(path)))


def complaint(path: Path, wrong: dict[str, str]) -> str:
    """Returns the message about damaged shards."""
    some = "\n  ".join(f"{file}: {reason}" for file, reason in list(wrong.items())[:10])
    again = _again(path, read_meta(path))
    return f"{path}: {len(wrong)} files changed since they were written:\n  {some}\nMend them with:\n  {again}"


def _again(path: Path, meta: dict[str, Any]) -> str:
    shards = meta["made_from"].get("shard_images")
    options = f"--verify --shard_images={shards}" if shards else "--verify"
    return f"{command(meta['name'], path.parents[1], *_sizes(meta), _resize(meta), _turned(meta))} {options}"


def _sizes(meta: dict[str, Any]) -> list[int]:
    return [meta["splits"][split]["image_size"] for split in ("test", "train")]


def _resize(meta: dict[str, Any]) -> str:
    return "squash" if meta["made_from"]["sides"]["test"][-1] == decode.BOTH else "crop"


def _turned(meta: dict[str, Any]) -> bool:
    return bool(meta["made_from"].get("turn"))


def _shards(meta: dict[str, Any]) -> list[dict[str, Any]]:
    return [shard for split in SPLITS for shard in meta["splits"][split]["shards"]]


def _split(path: Path, meta: dict[str, Any], name: str, checked: bool = False) -> Split:
    known = meta["splits"][name]
    shape = (known["image_size"], known["image_size"], 3)
    mend = f"mend it with:\n  {_again(path, meta)}"
    shards, checks = [], []
    # An empty shard (all its images damaged) cannot be mapped.
    for shard in (shard for shard in known["shards"] if shard["count"]):
        file = path / "shards" / shard["file"]
        shards.append(files.read_array(file, "mend it with data.prepare --verify", mapped=True))
        checks.append(blocks.Blocks(file, shards[-1], shard["blocks"], mend) if checked else None)
    images = ShardedImages(shards, shape, checks)
    columns = {}
    for column in _COLUMNS:
        file = path / f"{name}-{column}.npy"
        remedy = f"remove {path / META} and repeat data.prepare, which writes both anew"
        if not file.is_file():
            raise ValueError(f"expected the file {file}, which is not there; {remedy}")
        columns[column] = files.read_array(file, remedy)
        if (found := digest_of(columns[column])) != known["sha256"][column]:
            raise ValueError(f"{file}: expected sha256 {known['sha256'][column]}, found {found}; {remedy}")
    return make_split(images, columns["labels"], columns["index"], len(meta["class_names"]), f"{meta['name']} {name}")


def _size_problem(path: Path, shard: dict[str, Any]) -> str | None:
    file = path / "shards" / shard["file"]
    found = file.stat().st_size if file.exists() else "no file"
    return None if found == shard["bytes"] else f"expected {shard['bytes']} bytes, found {found}"


def _hash_problem(path: Path, shard: dict[str, Any]) -> str | None:
    try:
        images = files.read_array(path / "shards" / shard["file"])
    except (OSError, ValueError) as error:  # a damaged header
        return f"cannot be read ({error})"
    if (found := digest_of(images)) != shard["sha256"]:
        return f"expected sha256 {shard['sha256']}, found {found}"
    if shard["blocks"] != blocks.describe(images):
        return f"its checksums of blocks in {META} differ from its pixels"
    return None


CLASSES = {"imagenet100": 100, "imagenet": 1000}


def class_stride(name: str, found: int, where: str | os.PathLike) -> int:
    """Returns k if every k-th of the `found` classes in sorted order belongs to the dataset `name`.

    Raises ValueError where `found` is neither 1,000 nor the number of classes of `name`.
    """
    if found == CLASSES[name]:
        return 1
    if found == 1000:
        return 1000 // CLASSES[name]
    counts = " or ".join(str(n) for n in sorted({1000, CLASSES[name]}, reverse=True))
    raise ValueError(f"{where}: expected {counts} class folders for {name}, found {found}")


def tree_stride(name: str, root: Path) -> int:
    """Returns the `class_stride` of the tree at `root`."""
    folders = (root / folder for folder in ("train", *tree.TEST_FOLDERS))
    first = next((folder for folder in folders if folder.is_dir()), root)
    return class_stride(name, len(tree.class_folders(first)), first)


def load_imagenet(
    name: str,
    *,
    data_dir: str | os.PathLike,
    seed: int = 0,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    turn: bool = False,
    **kwargs: Any,
) -> Dataset:
    """Opens ImageNet-100 or ImageNet: the store that `python -m data.prepare` wrote below `data_dir`, else a tree.

    The prepared store is memory-mapped, so loading takes a second and no memory. A tree is decoded at the first load into
    `data.cache`, on one machine and in one go; prepare a whole ImageNet instead. Arguments as of `data.load`, and for a tree
    as of `load_image_folder`. A store must have been made with the same sizes.

    Raises:
      FileNotFoundError: there is no store of these sizes and this way to resize; the message has the command.
      ValueError: another `resize`, a prepared file is damaged, or the tree has another number of classes.
    """
    root = tree.find_root(data_dir)
    decode.sides(image_size, train_size, resize)  # refuses sizes before anything is searched
    prepared = folder(root, name, image_size, train_size, resize, turn)
    if (prepared / META).exists():
        if unused := sorted(kwargs.keys() - {"max_damaged", "cache_dir"}):  # these two change no pixel
            raise ValueError(
                f"{prepared}: expected no {', '.join(unused)} with a prepared store, whose splits are fixed"
            )
        return load(prepared, train_limit, test_limit, resize, turn)
    if (root / name).is_dir():
        ready = sorted(path.parent.name for path in (root / name).glob(f"*/{META}"))
        ways = [(way, turned) for turned in (turn, not turn) for way in (resize, *decode.RESIZE)]
        others = [way for way in ways if folder(root, name, image_size, train_size, *way).name in ready]
        flags = [f"--config.dataset.resize={way}" * (way != resize) for way, _ in others]
        flags = [
            f"{flag} {f'--config.dataset.turn={turned}' * (turned != turn)}" for flag, (_, turned) in zip(flags, others)
        ]
        other = f"\nor read the prepared one with {flags[0].strip()}" if flags else ""
        raise FileNotFoundError(
            f"{root / name} holds no finished {name} of size {prepared.name}, found {', '.join(ready) or 'nothing'}. "
            f"Prepare it, or continue, with:\n  {command(name, root, image_size, train_size, resize, turn)}{other}"
        )
    kwargs |= {"image_size": image_size, "train_size": train_size, "resize": resize, "turn": turn}
    kwargs |= {"seed": seed, "train_limit": train_limit, "test_limit": test_limit}
    return load_image_folder(name, data_dir=root, class_stride=tree_stride(name, root), **kwargs)
