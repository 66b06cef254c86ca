"""Any classifier into a workdir: `corruptions.evaluate` with the tables and references of eval.py."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis import tables
from analysis.answers import Key
from corruptions.scoring import answering
from data import Split
from data.dataset import sha256
from evaluation import measured
from evaluation.answers import Answers
from evaluation.conditions import Condition, list_conditions
from evaluation.results import Frame, count_answers, write_tables
from evaluation.shown import Shown
from runtime import meshes, workdirs


def evaluate(
    predict: answering.Predict,
    images: np.ndarray,
    labels: Sequence[int] | np.ndarray,
    *,
    corruptions: str | Sequence[str] = ("imagenet_c",),
    severity: str = "levels",
    batch_size: int = 100,
    dtype: str = "float32",
    seed: int = 0,
    index: Sequence[int] | np.ndarray | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    num_classes: int | None = None,
    dataset: str = "",
    reference: str | os.PathLike = "",
    reference_mismatch: str = "refuse",
    name: str = "standard",
    workdir: str | os.PathLike | None = None,
    progress: bool = True,
) -> list[tables.Count]:
    """Evaluates any classifier under corruptions as `corruptions.evaluate` does, and keeps and
    compares its errors as eval.py does those of trained models.

        counts = evaluate(logits, images, labels, corruptions=("imagenet_c/fog",), workdir="runs/mine")

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption,
    severity, index).

    Args:
      predict, images, labels, corruptions, severity, batch_size, dtype, seed, index, options: see
        `corruptions.evaluate`.
      num_classes: of the dataset; None is max(labels) + 1.
      dataset: name of what the images are, for errors that are compared with others': "imagenet"
        says ImageNet's, at 224 pixels with the shorter side resized to 256 and the centre cropped,
        which AlexNet's published errors hold for. "" is not known, and compared with nothing.
      reference: whose errors CE and mCE are relative to: `alexnet`, a file, an evaluated workdir,
        or "" for AlexNet's where they hold.
      reference_mismatch: `refuse` or `label`, when a reference holds for other conditions.
      name: of the classifier in the tables. What is known of this name in the workdir is not
        evaluated again.
      workdir: keeps every finished condition there, so that the same call resumes, and writes
        counts.csv, scores.csv, errors.csv and errors_summary.csv; None writes nothing.
      progress: show a progress bar on a terminal.

    Returns:
      List of `analysis.tables.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or what `predict` gave, is not as described.
      runtime.schema.SettingsError: a named reference holds for other conditions.
      runtime.workdirs.WorkdirError: the workdir is in use, or holds answers to other images.
    """
    labels, index = answering.checked(images, labels, index, seed, dtype, batch_size)
    tables.check_count((name, 0, tables.CLEAN, 0, 0, 1))  # a name that tables can hold
    asked = [corruptions] if isinstance(corruptions, str) else list(corruptions)
    conditions = list_conditions(asked, severity)
    shown = Shown(Split(images, labels, index), meshes.data_mesh(batch_size), batch_size, seed, options or {})

    def show(condition: Condition, rows: np.ndarray) -> Any:
        return shown.under(condition).showing(Split(images[rows], labels[rows], index[rows])).images()

    def answer(kept: "_OfOne | None" = None) -> dict[Condition, dict[Key, np.ndarray]]:
        bar = None if progress else False
        answers = answering.answers(
            predict, show, labels, conditions, batch_size=batch_size, dtype=dtype, progress=bar, kept=kept
        )
        return {condition: {(name, 0): correct} for condition, correct in answers.items()}

    if workdir is None:
        return count_answers(answer())
    hashes = {what: sha256(array) for what, array in (("images", images), ("labels", labels), ("index", index))}
    with workdirs.open_workdir(workdir, {"shown": hashes} | shown.draws) as path:
        classes, shape = num_classes or int(labels.max()) + 1, images.shape[1:]
        published = (dataset, *shape[:2]) == (measured.IMAGENET, 224, 224)
        known = measured.PREPROCESSING if published else "none" if dataset else ""
        measured_under = measured.of_images(dataset, classes, shape, known, shown.options, conditions, path)
        frame = Frame.of(measured_under, str(reference), reference_mismatch)
        answers = answer(_OfOne(Answers(path, len(shown), shown.draws | {"images": hashes}), (name, 0)))
        settings = {"corruptions": asked, "severity": severity, "seed": seed}
        counts = count_answers(answers)
        write_tables(path, counts, settings, f"{len(shown)} images", frame, printed=progress)
    return counts


class _OfOne:
    """The answers of one classifier among those that a workdir keeps."""

    def __init__(self, answers: Answers, key: Key):
        self._answers, self._key, self._known = answers, key, {}

    def read(self, condition: Condition) -> np.ndarray | None:
        self._known[condition] = self._answers.read(condition)
        return self._known[condition].get(self._key)

    def write(self, condition: Condition, correct: np.ndarray) -> None:
        self._answers.write(condition, self._known[condition] | {self._key: correct})
