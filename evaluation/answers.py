"""The answers that a workdir holds to the conditions of an evaluation: read, checked and written."""

import os
from collections.abc import Mapping

import numpy as np

from analysis import answers
from analysis.answers import Key, Record
from corruptions.scoring.conditions import RANDOM, Condition
from runtime import settings
from runtime.log import log
from runtime.settings import WorkdirError
from runtime.workdirs import Workdir

ByCondition = dict[Condition, dict[Key, np.ndarray]]
"""{condition: {(model, seed): bool [N], which images are answered correctly}}."""
_LISTED = 10  # conditions that a refusal names


class Store:
    """The files of answers to some conditions in a workdir. Of many processes only process 0 reads
    and writes files.

    Args:
      workdir: directory.
      records: {condition: what its answers are made from}.
      models: {(model, seed): digest of its state}.
    """

    def __init__(
        self, workdir: str | os.PathLike, records: Mapping[Condition, Record], models: Mapping[Key, str] | None = None
    ):
        self._workdir = Workdir(workdir).folder(answers.FOLDER)
        self._records, self._models = records, models or {}

    def read(self) -> ByCondition:
        """Reads the answers to every condition; a condition that was not evaluated has none.

        Answers of a model that was trained again since are left out with a warning.

        Raises:
          WorkdirError: answers are to other images than those of their record; names the conditions
            and what differs. Answers to other conditions do not matter.
          DamagedFileError: a file is damaged or was edited.
        """
        known, other = {}, []
        for condition, record in self._records.items():
            content = self._workdir.for_all(self._content, record)
            if content is None:
                known[condition] = {}
                continue
            by_model, before = answers.read_file(self._path(record), content=content)
            asked = {**record.shown, "number": record.number}
            if lines := settings.differences({**before.shown, "number": before.number}, asked):
                other.append(f"{record.stem}.npz: {'; '.join(lines)}")
            known[condition] = {key: bits for key, bits in by_model.items() if not self._is_stale(key, before)}
        if other:
            more = [f"... and {len(other) - _LISTED} more"] if len(other) > _LISTED else []
            raise WorkdirError(
                "\n  ".join(
                    [
                        f"{self._workdir} holds answers to other images under {len(other)} of {len(known)} conditions; "
                        "use the same settings or another workdir, or remove these files to evaluate them again:",
                        *other[:_LISTED],
                        *more,
                    ]
                )
            )
        return known

    def write(self, condition: Condition, by_model: Mapping[Key, np.ndarray]) -> None:
        """Writes the answers {(model, seed): bool [N]} to a condition, all that are known."""
        if self._workdir.writes:
            record = self._records[condition]
            path = self._path(record)
            before = answers.read_file(path)[1].models if path.exists() else {}
            answers.write(self._workdir.path, by_model, record._replace(models={**before, **self._models}))

    def _path(self, record):
        return self._workdir / f"{record.stem}.npz"

    def _content(self, record):
        """Returns the bytes of a file, None without one; of several sets of levels it becomes the
        newest, which tables take.
        """
        path = self._path(record)
        if not path.exists():
            return None
        if record.severity == RANDOM:
            stem = answers.file_stem(record.corruption, RANDOM)
            if len(list(self._workdir.path.glob(f"{stem}*.npz"))) > 1:
                path.touch()
        return path.read_bytes()

    def _is_stale(self, key, before):
        stale = answers.is_stale(before.models.get(key), self._models.get(key))
        if stale:
            text = "%s holds answers of %s, seed %d, from before it was trained again: it is evaluated again."
            log.warning(text, self._path(before), *key)
        return stale
