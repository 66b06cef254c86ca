"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from corruptions.batch import to_float
from data import Split
from training import evaluation
from training import mesh as meshes

DTYPES = ("float32", "uint8")
_to_float = jax.jit(to_float)


def check(images, labels, index, dtype, batch_size):
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


def evaluate(predict, key, split, conditions, *, seed, batch_size, dtype, options=None, answers=None, progress=True):
    """Which images `predict` answers correctly under every condition; the images are those of eval.py.

    Args:
      predict: function from images [batch_size, H, W, 3] to logits, see `eval.evaluate`.
      key: (name, seed) of the classifier in the answers.
      split: data.Split with uint8 images on the host.
      conditions: list of `evaluation.Condition`.
      seed: of the corrupted test sets.
      batch_size: images handed to `predict` at a time, always as many: the last batch is filled with copies.
      dtype: `float32`, images in [0, 1], or `uint8`.
      options: corruption -> its static options.
      answers: `training.answers.Answers` that keeps what is finished, or None.
      progress: show a progress bar.

    Returns:
      {condition: {key: bool [N]}}, as of `study.evaluate_models`.

    Raises:
      ValueError: `predict` gave something other than logits.
    """
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
                images = evaluation.corrupted_images(
                    mesh, part, condition, seed, (options or {}).get(condition.corruption)
                )
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
