"""The answers that a workdir keeps: which test images every model answers correctly."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis import answers
from analysis.answers import Key
from evaluation.conditions import Condition
from runtime import distributed, settings


class Answers:
    """The folder `answers` of a workdir: one file per condition (`analysis.answers`), and draws.json.

    Counts, scores and bootstraps all derive from these answers. Of many processes only the first
    touches the folder.

    Args:
      workdir: directory.
      number: of test images.
      draws: what the pixels shown depend on; answers to others are not mixed with these.

    Raises:
      WorkdirError: the folder holds answers to other images.
    """

    def __init__(self, workdir: str | os.PathLike, number: int, draws: Mapping[str, Any]):
        self._folder = pathlib.Path(workdir) / "answers"
        self._number = number
        distributed.on_main(lambda: self._claim(draws))

    def _claim(self, draws: Mapping[str, Any]) -> None:
        self._folder.mkdir(exist_ok=True)
        refusal = f"{self._folder} holds answers to other corrupted images; remove it or use the same settings"
        settings.claim(self._folder / "draws.json", draws, refusal)

    def read(self, condition: Condition) -> dict[Key, np.ndarray]:
        """Reads {(model, seed): bool [N]} of a condition; empty when nothing was evaluated.

        Raises:
          DamagedFileError: the file cannot be read, or holds answers to another number of images.
        """
        path = self._path(condition)
        content = distributed.from_main(lambda: path.read_bytes() if path.exists() else None)
        return {} if content is None else answers.read(path, self._number, content=content)

    def write(self, condition: Condition, by_model: Mapping[Key, np.ndarray]) -> None:
        """Writes {(model, seed): bool [N]}, all that is known of a condition."""
        if distributed.is_main():
            answers.write(self._path(condition), by_model)

    def _path(self, condition: Condition) -> pathlib.Path:
        return self._folder / f"{condition.file_name}.npz"
