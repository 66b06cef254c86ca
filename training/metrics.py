"""Metrics as JSON lines, one a block of steps, consistent with the checkpoint resumed from; and for
TensorBoard, where asked for.
"""

import json
import pathlib

from runtime import distributed, files, shapes


def training_seconds(path: str | pathlib.Path, batch_size: int) -> float:
    """Sums the seconds of training in a metrics.jsonl.

    Compilation is included, time between interrupted runs is not.

    Raises:
      DamagedFileError: a line that is no report of a block.
    """
    seconds, before = 0.0, 0
    for number, values in enumerate(_lines(path, {"step": int, "images_per_second": float}), 1):
        if not values["images_per_second"] > 0:
            raise _damaged(path, number, f"expected images_per_second above 0, found {values['images_per_second']}")
        seconds += (values["step"] - before) * batch_size / values["images_per_second"]
        before = values["step"]
    return seconds


def _lines(path, shape):
    """Yields the lines of a metrics.jsonl up to one that a killed process was writing, the last."""
    if not pathlib.Path(path).exists():
        return
    for number, text in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            return  # nothing complete follows it
        if wrong := shapes.mismatch(line, shape):
            raise _damaged(path, number, wrong)
        yield line


def _damaged(path, number, wrong):
    return files.DamagedFileError(f"{path}, line {number}: {wrong}; remove the line")


class MetricsLog:
    """Appends to `metrics.jsonl`; of many processes only the first writes.

    The first line written drops what a killed run wrote after its last checkpoint. Before it there is
    no file, so that a run refused before its first step leaves no result.

    Args:
      path: of the file.
      step: that the run begins at.
      tensorboard: write the same numbers to the folder `tensorboard` beside it.

    Raises:
      DamagedFileError: the file holds a line that is no report of a block.
    """

    def __init__(self, path: str | pathlib.Path, step: int, *, tensorboard: bool = False):
        self._file = self._events = None
        if not distributed.is_main():
            return
        self._path, self._step, self._tensorboard = pathlib.Path(path), step, tensorboard
        self._kept = [line for line in _lines(self._path, {"step": int}) if line["step"] <= step]

    def _open(self):
        files.write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._kept))
        self._file = open(self._path, "a")  # noqa: SIM115 - closed by close()
        if self._tensorboard:
            from tensorboardX import SummaryWriter  # not installed with the rest

            folder = str(self._path.with_name("tensorboard"))
            self._events = SummaryWriter(folder, purge_step=self._step + 1, filename_suffix=f".{self._step}")

    def write(self, step: int, **values: float) -> None:
        """Adds the line of the block that ended at `step`."""
        if not distributed.is_main():
            return
        if not self._file:
            self._open()
        with files.naming(self._path):
            self._file.write(json.dumps({"step": step} | values) + "\n")
            self._file.flush()
        if self._events:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)
            self._events.flush()

    def close(self) -> None:
        """Closes the file."""
        if not self._file:
            return
        with files.naming(self._path):
            self._file.close()
        if self._events:
            self._events.close()
