"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from analysis import tables
from corruptions.batch import to_float
from data import Split
from data.dataset import sha256
from evaluation import correctness
from evaluation.answers import Answers
from evaluation.conditions import list_conditions
from evaluation.results import count_answers, write_results
from runtime import meshes, workdirs

DTYPES = ("float32", "uint8")
_to_float = jax.jit(to_float)


def evaluate(
    predict,
    images,
    labels,
    *,
    corruptions=("imagenet_c",),
    severity="levels",
    batch_size=100,
    dtype="float32",
    seed=0,
    index=None,
    options=None,
    num_classes=None,
    name="standard",
    workdir=None,
    progress=True,
):
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = evaluate(logits, images, labels, corruptions=("imagenet_c/fog",), workdir="runs/mine")

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption, severity, index).

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits [batch_size, classes]: a NumPy or JAX
        array, or any that exports DLPack. Normalising the images is its business.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map too.
      labels: integers [N].
      corruptions: names of corruptions and of benchmarks.
      severity: `levels`, `random`, or numbers such as "1,3,5", see `evaluation.conditions.list_conditions`.
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling not counted.
      dtype: of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      seed: of the corrupted test sets.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1.
      options: corruption -> its static options, such as calibrated ranges.
      num_classes: of the dataset; 1000 is taken for ImageNet, and errors.csv is written. None is max(labels) + 1.
      name: of the classifier in the tables. What is known of this name in the workdir is not evaluated again.
      workdir: keeps every finished condition there, so that the same call resumes, and writes counts.csv, scores.csv
        and errors.csv; None writes nothing.
      progress: show a progress bar on a terminal.

    Returns:
      List of `analysis.tables.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or what `predict` gave, is not as described.
      runtime.workdirs.WorkdirError: the workdir is in use, or holds answers to other images.
    """
    labels = np.asarray(labels)
    index = np.arange(len(labels)) if index is None else np.asarray(index)
    _check(images, labels, index, dtype, batch_size)
    tables.check_count((name, 0, tables.CLEAN, 0, 0, 1))  # a name that tables can hold
    split, key, options = Split(images, labels, index), (name, 0), options or {}
    conditions = list_conditions(corruptions, severity)
    settings = {"seed": seed, "batch_size": batch_size, "dtype": dtype, "progress": progress, "options": options}
    if workdir is None:
        return count_answers(_answers(predict, key, split, conditions, **settings))
    shown = {what: sha256(array) for what, array in (("images", images), ("labels", labels), ("index", index))}
    with workdirs.open_workdir(workdir, {"shown": shown, "seed": seed, "options": options}) as path:
        kept = Answers(path, len(split), {"seed": seed, "options": options})
        answers = _answers(predict, key, split, conditions, **settings, answers=kept)
        num_classes = num_classes or int(labels.max()) + 1
        record = {"corruptions": list(corruptions), "severity": severity, "seed": seed}
        write_results(path, answers, record, f"{len(split)} images", num_classes)
    return count_answers(answers)


def _check(images, labels, index, dtype, batch_size):
    """Raises ValueError or TypeError unless these can be evaluated; the message says what was expected and found."""
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


def _answers(predict, key, split, conditions, *, seed, batch_size, dtype, options, progress, answers=None):
    """{condition: {key: bool [N]}}; `answers` keeps what is finished."""
    mesh = meshes.data_mesh(batch_size)
    found = {condition: answers.read(condition) if answers else {} for condition in conditions}
    missing = [condition for condition in conditions if key not in found[condition]]
    with tqdm(
        total=len(missing) * len(split), unit="image", dynamic_ncols=True, disable=None if progress else True
    ) as bar:
        for condition in missing:
            bar.set_description(condition.file_name)
            bits = []
            for start in range(0, len(split), batch_size):
                # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
                chosen = np.minimum(np.arange(start, start + batch_size), len(split) - 1)
                part = Split(split.images[chosen], split.labels[chosen], split.index[chosen])
                images = correctness.corrupted_images(mesh, part, condition, seed, options.get(condition.corruption))
                images = _to_float(images) if dtype == "float32" else jnp.asarray(images)
                number = min(batch_size, len(split) - start)
                logits = _logits(predict(images), batch_size, int(part.labels.max()))
                bits.append((logits.argmax(-1) == part.labels)[:number])
                bar.update(number)
            found[condition][key] = np.concatenate(bits)
            if answers:
                answers.write(condition, found[condition])
    return {condition: {key: found[condition][key]} for condition in conditions}


def _logits(given, number, largest):
    """What `predict` gave as a NumPy array [number, classes]."""
    foreign = hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray | jax.Array)
    logits = np.asarray(jax.dlpack.from_dlpack(given) if foreign else given)
    if logits.ndim != 2 or logits.shape[0] != number or logits.dtype.kind not in "fV":
        raise ValueError(
            f"expected real logits [{number}, classes] from predict, found {logits.dtype}{list(logits.shape)}"
        )
    if logits.shape[1] <= largest:
        raise ValueError(f"expected logits of at least {largest + 1} classes for these labels, found {logits.shape[1]}")
    if np.isnan(logits).any():
        raise ValueError("expected logits from predict, found NaN among them")
    return logits
