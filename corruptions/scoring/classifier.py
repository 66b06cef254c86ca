"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import contextlib
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corruptions import checks, registry
from corruptions.batch import corrupt
from corruptions.keys import named_key, prng
from corruptions.scoring import answering
from corruptions.scoring.conditions import CLEAN, Condition, list_conditions
from corruptions.scoring.counts import Count
from corruptions.scoring.folder import Folder
from corruptions.write import files
from corruptions.write import progress as bars


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
    path: str | os.PathLike | None = None,
    progress: bool | None = None,
) -> list[Count]:
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = corruptions.evaluate(logits, images, labels, path="mine")
        corruptions.mean_error(counts)

    Image i under a corruption is `corrupt(fold_in(key(seed), crc32(name)), images, name, severity,
    index=index)[i]`, with the qualified name, as `write_dataset` writes it.

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits [batch_size,
        classes]: a NumPy or JAX array, or any that exports DLPack. It normalises the
        images itself.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map
        too.
      labels: integers [N].
      corruptions: names of corruptions and of benchmarks, or one name.
      severity: `levels` (those that a benchmark selects, else all; for a range 0, 1/4 .. 1),
        `random` (each image draws its own), or numbers such as "1,3,5".
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling
        not counted.
      dtype: of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      seed: of the corrupted test sets.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1.
      options: corruption -> its static options, such as calibrated ranges.
      path: folder of this one classifier, made when missing. It keeps the answers to every finished
        condition, so that the same call continues and another one adds corruptions, and gets
        counts.csv and errors.csv of this call. None writes nothing.
      progress: a progress bar (tqdm): True, False, or None for where there is a terminal and tqdm.

    Returns:
      List of `Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, what `predict` gave or what `path` holds is not as
        described.
      corruptions.write.WriteError: the folder is not writable, or in use by another process.
    """
    labels, index = answering.checked(images, labels, index, seed, dtype, batch_size)
    asked = [corruptions] if isinstance(corruptions, str) else list(corruptions)
    conditions = list_conditions(asked, severity)
    given = {}
    for corruption, of_one in ((registry.get(name), of_one) for name, of_one in (options or {}).items()):
        checks.options(corruption.qualified_name, corruption.options, of_one)
        given[corruption.qualified_name] = dict(of_one)

    def show(condition: Condition, rows: np.ndarray) -> Any:
        if condition.corruption == CLEAN:
            return images[rows]
        name = condition.corruption
        of_one = registry.with_levels(given.get(name, {}), condition.levels)
        return corrupt(named_key(seed, name), images[rows], name, condition.value, index=index[rows], **of_one)

    with files.lock(path) if path is not None else contextlib.nullcontext():
        kept = None
        if path is not None:
            settings = {"seed": int(seed), "options": given, "dtype": dtype, "prng": prng()}
            kept = Folder(path, settings | _digests(images=images, labels=labels.astype(np.int64), index=index))
        answers = {condition: kept.read(condition) if kept else None for condition in conditions}
        missing = [condition for condition, correct in answers.items() if correct is None]
        with bars.bar(len(missing) * len(labels), "evaluating", progress) as bar:
            for condition in missing:
                bar.set_description(str(condition))
                of_condition = functools.partial(show, condition)
                correct = answering.correct(predict, of_condition, labels, batch_size, dtype, bar.update)
                answers[condition] = correct
                if kept:
                    kept.write(condition, correct)
        if kept:
            benchmarks = [name for name in asked if name in registry.benchmarks()]
            kept.write_tables(answers, {name: list_conditions([name], severity)[1:] for name in benchmarks})
    return [Count(c.corruption, c.label, int(correct.sum()), correct.size) for c, correct in answers.items()]


def _digests(**arrays: np.ndarray) -> dict[str, str]:
    return {name: hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() for name, array in arrays.items()}
