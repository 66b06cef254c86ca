"""Metrics as JSON lines, one a block of steps, consistent with the checkpoint resumed from."""

import json
import pathlib

from runtime import distributed, files


def training_seconds(path: str | pathlib.Path, batch_size: int) -> float:
    """Sums the seconds of training in a metrics.jsonl.

    Compilation is included, time between interrupted runs is not.
    """
    seconds, before = 0.0, 0
    for line in pathlib.Path(path).read_text().splitlines():
        values = json.loads(line)
        seconds += (values["step"] - before) * batch_size / values["images_per_second"]
        before = values["step"]
    return seconds


class MetricsLog:
    """Appends to `metrics.jsonl`; of many processes only the first writes.

    Opening at a step drops what a killed run wrote after its last checkpoint.
    """

    def __init__(self, path: str | pathlib.Path, step: int):
        self._file = None
        if not distributed.is_main():
            return
        self._path = pathlib.Path(path)
        kept = [line for line in self._lines() if line["step"] <= step]
        files.write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = open(self._path, "a")  # noqa: SIM115 - closed by close()

    def _lines(self):
        if not self._path.exists():
            return
        for text in self._path.read_text().splitlines():
            try:
                yield json.loads(text)
            except json.JSONDecodeError:
                return  # the line a killed process was writing; nothing complete follows it

    def write(self, step: int, **values: float) -> None:
        """Adds the line of the block that ended at `step`."""
        if not self._file:
            return
        with files.naming(self._path):
            self._file.write(json.dumps({"step": step} | values) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if not self._file:
            return
        with files.naming(self._path):
            self._file.close()
