"""The answers that a workdir keeps: which test images every model answers correctly."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis import answers
from analysis.answers import Key, MadeFrom
from evaluation.conditions import Condition, file_name
from runtime import bindings, distributed, files, settings
from runtime.log import log


class Answers:
    """The folder `answers` of a workdir: one file per condition (`analysis.answers`), and
    draws.json.

    Counts, scores and bootstraps all derive from these answers. Of many processes only the first
    touches the folder.

    Args:
      workdir: directory.
      number: of test images.
      draws: what the pixels shown depend on; answers to others are not mixed with these.
      models: {(model, seed): digest of its parameters}; answers of others under these names are not
        taken for theirs.
      alone: whether all answers of the folder are to these images; else each file tells which.

    Raises:
      WorkdirError: the folder holds answers to other images.
    """

    def __init__(
        self,
        workdir: str | os.PathLike,
        number: int,
        draws: Mapping[str, Any],
        models: Mapping[Key, str] | None = None,
        alone: bool = True,
    ):
        self._folder = pathlib.Path(workdir) / "answers"
        shown = distributed.from_main(lambda: bindings.digest(draws))
        self._made_from = MadeFrom(shown, number, models or {})
        distributed.on_main(lambda: self._folder.mkdir(exist_ok=True))
        if alone:
            distributed.on_main(lambda: self._claim(draws))

    def _claim(self, draws: Mapping[str, Any]) -> None:
        path = self._folder / "draws.json"
        before = files.read_json(path, remedy="remove the folder to evaluate again") if path.exists() else {}
        refusal = f"{self._folder} holds answers to other corrupted images; remove it or use the same settings"
        # Digests of the test images are newer than other settings: what has none is taken to be of
        # these.
        settings.claim(path, draws, refusal, free=() if "images" in before else ("images",))

    def read(self, condition: Condition) -> dict[Key, np.ndarray]:
        """Reads {(model, seed): bool [N]} of a condition; empty when nothing was evaluated.

        What was answered by earlier models, or to other images, is left out, and said.

        Raises:
          DamagedFileError: the file cannot be read, or holds answers to another number of images.
        """
        path = self._path(condition)
        content = distributed.from_main(lambda: path.read_bytes() if path.exists() else None)
        if content is None:
            return {}
        packed, made_from = answers.read_packed(path, content=content)
        if made_from.shown not in ("", self._made_from.shown):
            log.warning("%s holds answers to other images than these: they are evaluated again.", path)
            return {}
        before, now = made_from.models, self._made_from.models
        for model, seed in [key for key in packed if key in before and before[key] != now.get(key, before[key])]:
            log.warning(
                "%s holds answers of %s, seed %d, from before it was trained again: it is evaluated again.",
                path,
                model,
                seed,
            )
            del packed[model, seed]
        return answers.unpack(path, packed, self._made_from.number)

    def write(self, condition: Condition, by_model: Mapping[Key, np.ndarray]) -> None:
        """Writes {(model, seed): bool [N]}, all that is known of a condition."""
        if distributed.is_main():
            path = self._path(condition)
            before = answers.read_packed(path)[1].models if path.exists() else {}
            made_from = self._made_from._replace(models={**before, **self._made_from.models})
            answers.write(path, by_model, made_from)

    def _path(self, condition: Condition) -> pathlib.Path:
        return self._folder / f"{file_name(condition)}.npz"
