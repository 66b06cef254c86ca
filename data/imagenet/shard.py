"""One shard of a store: a piece of the source decoded into one file, and the record that says it is
complete.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from data import blocks, decode, npy
from runtime import files

# (name for messages, label, path or open file of encoded bytes) of one image.
Encoded = tuple[str, int, str | BinaryIO]


def write(path: Path, items: Iterable[Encoded], image_size: int, short: int) -> dict[str, Any]:
    """Decodes the items to `path`, images at [image_size, image_size], and returns the record
    written beside it.

    The record is written after the images, both atomically: where there is a record, there are the
    images.

    Args:
      path: shards/NAME.npy.
      items: the images, in order.
      image_size: side in pixels.
      short: of the shorter side before the crop, see `decode.square`.

    Returns:
      {"file", "count", "bytes", "sha256" (of the pixels), "blocks" (their checksums, see
      `data.blocks`), "labels": [count], "positions": [count] (place among the items), "seen"
      (number of items), "damaged": ["name (reason)", ...]}.
    """
    labels, positions, damaged = [], [], []
    seen = 0
    with files.writing(path) as file:
        images = npy.Writer(file, (image_size, image_size, 3))
        for name, label, encoded in items:
            image = decode.read(encoded, image_size, short, name)
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
    record["blocks"] = blocks.describe(files.read_array(path, mapped=images.count > 0))
    files.write_json(path.with_suffix(".json"), record)
    return record


def read_record(path: Path) -> dict[str, Any] | None:
    """The record of a complete shard; None when it is absent or its file is not of the size it
    says.
    """
    try:
        record = files.read_json(path.with_suffix(".json"))
        return record if path.stat().st_size == record["bytes"] else None
    except (OSError, ValueError, KeyError):
        return None


def discard(path: Path) -> None:
    """Removes a shard and its record, so that it is made again."""
    path.with_suffix(".json").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
