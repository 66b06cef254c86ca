"""Measures the device that JAX finds, piece by piece.

    python -m benchmarks.device --minutes=8 --out=runs/device --data_dir=TFDS

Writes OUT/DEVICE.json after every piece; the same command continues it. First each of the five parts may take its share of
the time (benchmarks/device/contract.py), then all pieces that are left follow in order. Results of another revision, of
other versions or of another machine are not changed; new pieces go to a file beside them.
"""

from runtime import command  # isort: skip

import datetime
import pathlib
import re
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from absl import flags

import corruptions
from benchmarks import timing
from benchmarks.device import contract, pixels, works
from runtime import artifacts, files, meshes
from runtime.log import log
from tests.reference.photographs import crops


class Record:
    """The JSON of a machine in a folder: its identity, finished pieces, pieces that failed.

    The identity is machine, versions and revision; a file of another identity is not changed.
    """

    def __init__(self, folder: pathlib.Path, identity: Mapping[str, Any]):
        slug = re.sub(r"[^a-z0-9]+", "_", f"{identity['device']} x {identity['devices']}".lower()).strip("_")
        self.content = {"identity": dict(identity), "pieces": {}, "failed": {}}
        for path in (folder / f"{slug}.json", folder / f"{slug}-{artifacts.digest(identity)[:8]}.json"):
            self.path = path
            if not path.exists():
                return
            found = files.read_json(path)
            if found.get("identity") == self.content["identity"]:
                self.content = found
                return
            old = found.get("identity", {})
            other = [key for key in identity if old.get(key) != identity[key]] or ["identity"]
            log.info(
                "%s holds results of another %s (%s); they stay, and this run writes another file.",
                *(path, " and ".join(other), ", ".join(str(old.get(key)) for key in other)),
            )
        raise ValueError(f"expected results of this machine in {self.path}, found others: give another --out")

    def finished(self, name: str) -> bool:
        """Returns True if a piece is measured."""
        return name in self.content["pieces"]

    def add(self, name: str, measured: Mapping[str, Any]) -> None:
        """Adds a piece and writes the file."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self.content["pieces"][name] = dict(measured) | {"written": now}
        self.content["failed"].pop(name, None)
        files.write_json(self.path, self.content)

    def fail(self, name: str, error: Exception) -> None:
        """Notes why a piece failed; the next call tries it again."""
        lines = str(error).strip().splitlines() or [""]
        self.content["failed"][name] = f"{type(error).__name__}: {lines[0][:300]}"
        files.write_json(self.path, self.content)


def measure(
    record: Record, pieces: Mapping[str, Mapping[str, Any]], sizes: contract.Scale, end: float, data_dir: str = ""
) -> None:
    """Measures the missing `pieces` (`contract.pieces`): each part up to its share of the time, then all in order.

    The time is over at `end`, by `time.monotonic`; `data_dir` is the folder of the tfds datasets.
    """
    begin, tried = time.monotonic(), set()
    turns = np.cumsum(list(contract.PARTS.values())) * (end - begin) + begin
    for limit, part in [*zip(turns, contract.PARTS), *((end, part) for part in contract.PARTS)]:
        for name in (name for name in pieces if name.startswith(f"{part}/")):
            if name in tried or record.finished(name) or limit - time.monotonic() <= sizes.needs[part]:
                continue
            tried.add(name)
            timing.keep_programs(part not in sizes.compiled_anew)
            start = time.monotonic()
            try:
                measured = works.run(pieces[name], data_dir)
            except Exception as error:  # noqa: BLE001 - a piece that fails must not cost the others
                record.fail(name, error)
                log.warning("%s failed: %s", name, record.content["failed"][name])
                log.debug("", exc_info=True)
            else:
                stats = jax.devices()[0].memory_stats() or {}
                peak = {"peak_bytes_so_far": stats["peak_bytes_in_use"]} if "peak_bytes_in_use" in stats else {}
                record.add(name, measured | peak | {"took_seconds": round(time.monotonic() - start, 2)})
                _say(name, record, len(pieces))


def _say(name, record, number):
    piece = record.content["pieces"][name]
    text = f"{piece.get('images_per_second', 0):,.0f} images/s"
    if "by_one" in piece:
        text = f"of {piece['values']:,} values {piece['by_one']} differ by a level, {piece['by_more']} by more"
    if "batch_of_contract" in piece:
        text += f"; batch {piece['batch']} for {piece['batch_of_contract']}, which does not fit"
    log.info("%d of %d: %s, %s", len(record.content["pieces"]), number, name, text)


def main(argv):
    given = command.given(argv, {"out": "DIR"})
    end = time.monotonic() + 60 * given.minutes
    corruptions.laion_c.use_bank(crops(5000))
    meshes.use_all_cores()
    meshes.enable_compilation_cache()
    machine = timing.machine()
    kind = ("cpu" if machine["platform"] == "cpu" else "accelerator") if given.scale == "auto" else given.scale
    sizes = contract.scale(kind, machine["memory_bytes"] or 0)
    names = tuple(pixels.stored())
    pieces = contract.pieces(sizes, names[:2] if kind == "smoke" else names)
    identity = {"contract": contract.CONTRACT, "scale": kind, "reduced": list(sizes.reduced)} | machine
    record = Record(pathlib.Path(given.out), identity)
    record.content.setdefault("limits", timing.limits())
    measure(record, pieces, sizes, end, given.data_dir)
    done = sum(map(record.finished, pieces))
    state = "all are measured" if done == len(pieces) else "no time left for the others; the same command continues"
    if failed := len(record.content["failed"]):
        state = f"{failed} failed (the file says why), and the same command tries them again"
    log.info("%s: %d of %d pieces; %s", record.path, done, len(pieces), state)


if __name__ == "__main__":
    flags.DEFINE_float("minutes", 8.0, "Time of this call; pieces that are left over wait for the next.", lower_bound=0)
    flags.DEFINE_string("out", None, "Folder of the JSON (required).")
    flags.DEFINE_string("data_dir", "", "Folder of tfds datasets with cifar10; empty: TFDS_DATA_DIR or the default.")
    flags.DEFINE_enum("scale", "auto", ["auto", "accelerator", "cpu", "smoke"], "Sizes; auto follows the device.")
    command.run(main)
