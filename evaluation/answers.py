"""Per-image correctness of every model under every condition: what all scores derive from."""

import pathlib

import numpy as np

from runtime import distributed, files, settings
from runtime.settings import WorkdirError


class Answers:
    """Per-image correctness of every model under every condition, one file per condition, in `workdir/answers`.

    Each file holds packed bits by `model|seed`. Counts, scores and bootstraps all derive from these bits.
    """

    def __init__(self, workdir, number, draws):
        self._directory = pathlib.Path(workdir) / "answers"
        self._number = number
        distributed.on_main(lambda: self._claim(draws))

    def _claim(self, draws):
        self._directory.mkdir(exist_ok=True)
        refusal = f"{self._directory} holds answers to other corrupted images; remove it or use the same settings"
        settings.claim(self._directory / "draws.json", draws, refusal)

    def read(self, condition):
        """{(model, seed): bool [N]} of a condition, empty when nothing was evaluated."""
        path = self._directory / f"{condition.file_name}.npz"
        content = distributed.from_main(lambda: path.read_bytes() if path.exists() else None)
        if content is None:
            return {}
        answers = {}
        for name, bits in files.read_arrays(
            path, "remove it to evaluate this condition again", content=content
        ).items():
            model, seed = name.rsplit("|", 1)
            if bits.shape != (-(-self._number // 8),):
                raise WorkdirError(
                    f"{path}: expected answers to {self._number} images, found {bits.size} bytes for {name}"
                )
            answers[model, int(seed)] = np.unpackbits(bits, count=self._number).astype(bool)
        return answers

    def write(self, condition, answers):
        if not distributed.is_main():
            return
        packed = {f"{model}|{seed}": np.packbits(bits) for (model, seed), bits in answers.items()}
        files.write_arrays(self._directory / f"{condition.file_name}.npz", packed)
