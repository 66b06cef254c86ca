"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from analysis import tables
from analysis.answers import Key
from corruptions.batch import to_float
from corruptions.keys import image_index, integers, seed_key
from data import Split
from data.dataset import sha256
from evaluation import measured
from evaluation.answers import Answers
from evaluation.conditions import Condition, list_conditions
from evaluation.results import Frame, count_answers, write_tables
from evaluation.shown import Shown
from runtime import meshes, workdirs

DTYPES = ("float32", "uint8")
_to_float = jax.jit(to_float)


def evaluate(
    predict: Callable[[jax.Array], Any],
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
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = evaluate(logits, images, labels, corruptions=("imagenet_c/fog",), workdir="runs/mine")

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption,
    severity, index).

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits [batch_size,
        classes]: a NumPy or JAX array, or any that exports DLPack. Normalising the images is its
        business.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map
        too.
      labels: integers [N].
      corruptions: names of corruptions and of benchmarks, or one name.
      severity: `levels`, `random`, or numbers such as "1,3,5", see
        `evaluation.conditions.list_conditions`.
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling
        not counted.
      dtype: of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      seed: of the corrupted test sets.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1.
      options: corruption -> its static options, such as calibrated ranges.
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
    labels = np.asarray(labels)
    index = np.arange(len(labels)) if index is None else np.asarray(integers(index))
    _check(images, labels, index, dtype, batch_size)
    # Before anything is written: they refuse what is none.
    image_index(index, len(index))
    seed_key(seed)
    tables.check_count((name, 0, tables.CLEAN, 0, 0, 1))  # a name that tables can hold
    asked = [corruptions] if isinstance(corruptions, str) else list(corruptions)
    conditions = list_conditions(asked, severity)
    shown = Shown(Split(images, labels, index), meshes.data_mesh(batch_size), batch_size, seed, options or {})
    answer = functools.partial(_answers, predict, (name, 0), shown, conditions, dtype, progress)
    if workdir is None:
        return count_answers(answer())
    hashes = {what: sha256(array) for what, array in (("images", images), ("labels", labels), ("index", index))}
    with workdirs.open_workdir(workdir, {"shown": hashes} | shown.draws) as path:
        classes, shape = num_classes or int(labels.max()) + 1, images.shape[1:]
        published = (dataset, *shape[:2]) == (measured.IMAGENET, 224, 224)
        known = measured.PREPROCESSING if published else "none" if dataset else ""
        measured_under = measured.of_images(dataset, classes, shape, known, shown.options, conditions, path)
        frame = Frame.of(measured_under, str(reference), reference_mismatch)
        answers = answer(Answers(path, len(shown), shown.draws | {"images": hashes}))
        settings = {"corruptions": asked, "severity": severity, "seed": seed}
        counts = count_answers(answers)
        write_tables(path, counts, settings, f"{len(shown)} images", frame, printed=progress)
    return counts


def _check(images: np.ndarray, labels: np.ndarray, index: np.ndarray, dtype: str, batch_size: int) -> None:
    """Raises ValueError or TypeError unless these can be evaluated."""
    if np.ndim(images) != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
        raise TypeError(f"expected images uint8[N, H, W, 3], found {images.dtype}{list(np.shape(images))}")
    number = len(images)
    if number == 0:
        raise ValueError("expected at least one image, found none")
    for name, array in (("labels", labels), ("index", index)):
        if array.shape != (number,) or array.dtype.kind not in "iu":
            raise ValueError(f"expected {name} of integers [{number}], found {array.dtype}{list(array.shape)}")
    if dtype not in DTYPES:
        raise ValueError(f"expected dtype among {', '.join(DTYPES)}, found {dtype!r}")
    if batch_size < 1:
        raise ValueError(f"expected batch_size of at least 1, found {batch_size}")


def _answers(
    predict: Callable[[jax.Array], Any],
    key: Key,
    shown: Shown,
    conditions: Sequence[Condition],
    dtype: str,
    progress: bool,
    kept: Answers | None = None,
) -> dict[Condition, dict[Key, np.ndarray]]:
    """{condition: {key: bool [N]}}; what is finished goes to `kept`, what it holds is read back."""
    known = {condition: kept.read(condition) if kept else {} for condition in conditions}
    missing = [condition for condition in conditions if key not in known[condition]]
    images = len(missing) * len(shown)
    with tqdm(total=images, unit="image", dynamic_ncols=True, disable=None if progress else True) as bar:
        for condition in missing:
            bar.set_description(condition.file_name)
            known[condition][key] = _correct(predict, shown.under(condition), dtype, bar)
            if kept:
                kept.write(condition, known[condition])
    return {condition: {key: known[condition][key]} for condition in conditions}


def _correct(predict: Callable[[jax.Array], Any], shown: Shown, dtype: str, bar: tqdm) -> np.ndarray:
    """Which of the images shown `predict`, given whole batches, answers correctly: bool [N]."""
    split, size = shown.split, shown.batch_size
    correct = []
    for start in range(0, len(split), size):
        # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
        rows = np.minimum(np.arange(start, start + size), len(split) - 1)
        batch = Split(split.images[rows], split.labels[rows], split.index[rows])
        images = shown.showing(batch).images()
        images = _to_float(images) if dtype == "float32" else jnp.asarray(images)
        logits = _logits(predict(images), size, int(batch.labels.max()))
        number = min(size, len(split) - start)
        correct.append((logits.argmax(-1) == batch.labels)[:number])
        bar.update(number)
    return np.concatenate(correct)


def _logits(answer: Any, number: int, largest: int) -> np.ndarray:
    """What `predict` gave as a NumPy array [number, classes], refused when it is something else."""
    foreign = hasattr(answer, "__dlpack__") and not isinstance(answer, np.ndarray | jax.Array)
    logits = np.asarray(jax.dlpack.from_dlpack(answer) if foreign else answer)
    if logits.ndim != 2 or logits.shape[0] != number or logits.dtype.kind not in "fV":
        raise ValueError(
            f"expected real logits [{number}, classes] from predict, found {logits.dtype}{list(logits.shape)}"
        )
    if logits.shape[1] <= largest:
        raise ValueError(f"expected logits of at least {largest + 1} classes for these labels, found {logits.shape[1]}")
    if np.isnan(logits).any():
        raise ValueError("expected logits from predict, found NaN among them")
    return logits
