"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import contextlib
import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import files
from corruptions.assets import with_files
from corruptions.core import registry
from corruptions.core.batch import corrupt, to_float
from corruptions.core.checks import FLOATS, image_shape
from corruptions.core.corruption import Corruption
from corruptions.core.dispatch import unmasked
from corruptions.core.keys import image_index, integers, named_key, seed_key
from corruptions.core.origin import Origin, Probe, make, places_of, probed_places, values_of
from corruptions.core.severity_tables import BY_SIZE, OF_MANY_SIZES, say_one_for_all
from corruptions.scoring import confidence
from corruptions.scoring.conditions import CLEAN, Condition, Severities, expand, list_conditions
from corruptions.scoring.counts import Count, below_chance
from corruptions.scoring.folder import Folder
from corruptions.scoring.reuse import Part, Passes, look, reusable
from corruptions.write import progress as bars

DTYPES = ("float32", "uint8")
OUTPUTS = ("logits", "probabilities")
Predict = Callable[[jax.Array], Any]
"""From images [batch_size, H, W, 3] to logits, or probabilities, [batch_size, classes]."""
_to_float = jax.jit(to_float)
_FILLED = 2**30  # bytes of a batch that is mostly filling: a mistake, not a network that takes batches of one size
_LARGEST_LABEL = 2**31 - 1  # beyond it a label would count as another one, in 32 bits


def checked(
    images: Any, labels: Any, index: Any, seed: int, dtype: str, batch_size: int, outputs: str = "logits"
) -> tuple[np.ndarray, np.ndarray]:
    """Checks the arguments of `evaluate`; returns labels and index, integers [N]; the default index is 0 .. N - 1."""
    labels = np.asarray(unmasked(labels))
    unmasked(images)
    index = np.arange(len(labels)) if index is None else np.asarray(integers(index))
    kind = getattr(images, "dtype", type(images).__name__)
    if np.ndim(images) != 4 or np.shape(images)[-1] != 3 or kind != np.uint8:
        raise TypeError(f"expected images uint8[N, H, W, 3], found {kind}{list(np.shape(images))}")
    image_shape(images.shape[1:])
    number = len(images)
    if number == 0:
        raise ValueError("expected at least one image, found none")
    for name, array in (("labels", labels), ("index", index)):
        if array.shape != (number,) or array.dtype.kind not in "iu":
            raise ValueError(f"expected {name} of integers [{number}], found {array.dtype}{list(array.shape)}")
    if labels.min() < 0 or labels.max() > _LARGEST_LABEL:
        raise ValueError(f"expected labels from 0 to {_LARGEST_LABEL}, found {labels.min()} to {labels.max()}")
    if dtype not in DTYPES:
        raise ValueError(f"expected dtype among {', '.join(DTYPES)}, found {dtype!r}")
    if outputs not in OUTPUTS:
        raise ValueError(f"expected outputs among {', '.join(OUTPUTS)}, found {outputs!r}")
    if batch_size < 1:
        raise ValueError(f"expected batch_size of at least 1, found {batch_size}")
    filled = batch_size * math.prod(images.shape[1:]) * (4 if dtype == "float32" else 1)
    if batch_size > number and filled > _FILLED:
        raise ValueError(
            f"expected batch_size up to {number}, the number of images, found {batch_size}, a batch that copies of the last "
            f"image fill up to {filled / 2**30:.3g} GiB; batch_size={number}"
        )
    image_index(index, number)  # refuses a wrong index
    seed_key(seed)  # refuses a wrong seed
    return labels, index


def _parts(
    images: Any, labels: Any, index: Any, seed: int, dtype: str, batch_size: int, outputs: str, sizes: set[Any]
) -> Callable[[], Any]:
    """Checks the test set of `evaluate`; returns a function that yields its parts, once for each condition, and adds the
    (H, W) of batches to `sizes`.
    """
    if labels is not None:
        of_all = Part(images, *checked(images, labels, index, seed, dtype, batch_size, outputs), batch_size)
        return lambda: iter([of_all])
    if isinstance(images, Iterator) or not isinstance(images, Iterable) or hasattr(images, "dtype"):
        kind = f"{type(images).__name__} without labels"
        raise TypeError(
            "expected images with labels, or a list, DataLoader or other iterable of batches (images, labels) that can "
            f"be read once for each condition, found {kind}"
        )
    if index is not None:
        raise ValueError("expected index=None with batches, which number their images in order, found an index")

    passes = Passes()

    def read() -> Iterator[Part]:
        start, size = 0, 0
        for batch in images:
            if not isinstance(batch, tuple | list) or len(batch) != 2:
                raise TypeError(f"expected batches (images, labels), found {type(batch).__name__}")
            pixels, of_batch = (np.asarray(unmasked(array)) for array in batch)
            places = np.arange(start, start + len(of_batch))
            size = size or len(of_batch)
            sizes.add(pixels.shape[1:3])
            yield Part(pixels, *checked(pixels, of_batch, places, seed, dtype, size, outputs), size)
            start += len(of_batch)
        if not start:
            raise ValueError("expected at least one batch, found none")

    return lambda: passes.compared(read())


class Answer(NamedTuple):
    """The answers to N images."""

    correct: np.ndarray  # bool [N], which are right
    confidence: np.ndarray  # `confidence.STORED` [N]
    classes: int  # that the classifier tells apart


def answer(
    predict: Predict,
    show: Callable[[np.ndarray], Any],
    labels: np.ndarray,
    batch_size: int,
    dtype: str,
    outputs: str = "logits",
    update: Callable[[int], object] = lambda count: None,
) -> Answer:
    """Asks a classifier about all images under one condition.

    Args:
      predict, outputs, dtype: as of `evaluate`; ValueError for anything else that `predict` gives.
      show: from the places of images [n] to these images, uint8 [n, H, W, 3].
      labels: integers [N].
      batch_size: images for `predict`; every batch has as many.
      update: called with the number of images of each batch, for a progress bar.
    """
    parts = []
    for start in range(0, len(labels), batch_size):
        # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
        rows = np.minimum(np.arange(start, start + batch_size), len(labels) - 1)
        images, targets = show(rows), labels[rows].astype(np.int32)
        images = _to_float(images) if dtype == "float32" else jnp.asarray(images)
        scores = _scores(predict(images), batch_size, int(targets.max()), outputs)
        predicted = scores.argmax(-1).astype(np.int32)
        if outputs == "logits":
            fields = confidence.encode(scores, targets, predicted, np.float32(1))
        else:
            confidence.check_probabilities(scores)
            fields = confidence.encode_probabilities(scores, targets, predicted)
        number = min(batch_size, len(labels) - start)
        parts.append(((predicted == targets)[:number], confidence.pack(fields)[:number]))
        update(number)
    correct, of_answers = map(np.concatenate, zip(*parts, strict=True))
    return Answer(correct, of_answers, scores.shape[1])


def _scores(answer: Any, number: int, largest: int, outputs: str) -> np.ndarray:
    """Converts the answer of `predict` to a NumPy array [number, classes]; refuses anything else."""
    foreign = hasattr(answer, "__dlpack__") and not isinstance(answer, np.ndarray | jax.Array)
    scores = np.asarray(jax.dlpack.from_dlpack(answer) if foreign else unmasked(answer))
    if scores.ndim != 2 or scores.shape[0] != number or scores.dtype not in FLOATS:
        hint = "" if scores.dtype in FLOATS else "; predict(images).astype(numpy.float32)"
        raise ValueError(
            f"expected real {outputs} [{number}, classes] from predict, found {scores.dtype}{list(scores.shape)}{hint}"
        )
    if scores.shape[1] <= max(largest, 1):
        raise ValueError(
            f"expected {outputs} of at least {max(largest, 1) + 1} classes for these labels, found {scores.shape[1]}"
        )
    top = scores.max(-1)
    if not (top < np.inf).all() or (top == -np.inf).any():
        found = "NaN" if np.isnan(top).any() else "infinity"
        raise ValueError(f"expected {outputs} from predict, found {found} among them")
    return scores


def evaluate(
    predict: Predict,
    images: np.ndarray | Iterable[tuple[Any, Any]],
    labels: Sequence[int] | np.ndarray | None = None,
    *,
    corruptions: str | Sequence[str] = ("imagenet_c",),
    severity: Severities = "levels",
    batch_size: int = 100,
    dtype: str = "float32",
    outputs: str = "logits",
    seed: int = 0,
    index: Sequence[int] | np.ndarray | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    path: str | os.PathLike | None = None,
    network: str | None = None,
    progress: bool | None = None,
) -> list[Count]:
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = corruptions.evaluate(logits, images, labels, path="mine")
        corruptions.mean_error(counts)
        corruptions.ce_table(counts)                                                                 # CE, mCE

    A test set that does not fit in memory comes as batches: `evaluate(logits, loader)`.

    Image i under a corruption is `corrupt(fold_in(key(seed), crc32(name)), images, name, severity,
    index=index)[i]`, with the qualified name, as `write_dataset` writes it; but of a C-bar benchmark at another
    size than its own, `write_dataset` takes the ranges of the benchmark, and this function those of the size.

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits or probabilities [batch_size,
        classes]: a NumPy or JAX array, or any that exports DLPack. It normalises the images itself.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map
        too. Or an iterable of batches (images, labels), with labels=None: a list, a DataLoader without
        shuffling. It is read once for each condition, and once more for `path`; each time it must yield the same images. Where
        batches have several sizes, all images have the severity table `imagenet`, as in `corrupt_each`; the option
        `table="by_size"` of a corruption takes that nearest to the shorter side.
      labels: integers [N], below 2^31.
      corruptions: names of corruptions and of benchmarks, or one name.
      severity: `levels` (those that a benchmark selects, else all; for a range 0, 1/4 .. 1),
        `random` (each image draws its own), a number, or several: (1, 3, 5), "1,3,5"; of a benchmark
        that selects levels its severities, 1 the mildest that it selects.
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling
        not counted; more than there are images only below 1 GiB. Batches that are given have the size of the first.
      dtype: dtype of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      outputs: what `predict` returns: `logits`, any real numbers, or `probabilities`, which sum to 1.
        The confidence of the answers follows from it.
      seed: seed of the corrupted test sets.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1, and batches have none.
      options: corruption -> its static options, such as calibrated ranges; those of corruptions that are not asked for have
        no effect.
      path: folder of this one classifier, made when missing. It keeps the per-image results under every finished
        condition and their confidence (`confidence.STORED`), so that the same call continues and another one adds corruptions, and gets
        counts.csv and errors.csv of this call. What made a result is kept beside it (`corruptions.core.origin`): before anything
        is reused, `predict` is asked again about 32 images, and a corruption whose code changed must give the pixels that it
        gave. `corruptions.scoring.folder.read_wrong` and `read_confidence` read a folder without `predict`. None writes nothing.
      network: name of the classifier, compared with the stored one in place of asking `predict` again: for one that draws
        at random or adapts to its batches.
      progress: a progress bar, or lines where tqdm is not installed: True, False, or None for only a terminal.

    Returns:
      List of `Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, what `predict` gave or what `path` holds is not as described.
      corruptions.write.WriteError: the folder is an address such as gs://bucket, not writable, or in use by another
        process.
    """
    if path is not None and not os.fspath(path):
        raise ValueError("expected path=None, or the path of a folder, found an empty one")
    asked = [corruptions] if isinstance(corruptions, str | Corruption) else list(corruptions)
    given = registry.qualified_options(options or {})
    conditions = list_conditions(asked, severity, given)
    used = {name: with_files(name, given.get(name, {})) for name in expand(asked)}
    sizes: set[Any] = set()  # known after the first pass, that of `look` or of the clean images
    parts = _parts(images, labels, index, seed, dtype, batch_size, outputs, sizes)

    def in_use(name: str) -> tuple[str | Corruption, dict[str, Any]]:
        found = registry.get(name)
        if len(sizes) < 2 or found.for_many_sizes is found or "table" in used[name]:
            return name, used[name]
        say_one_for_all("evaluate")
        return found.for_many_sizes, {"table": OF_MANY_SIZES, **used[name]} if "table" in found.options else used[name]

    def show(condition: Condition, part: Part, rows: np.ndarray) -> Any:
        if condition.corruption == CLEAN:
            return part.images[rows]
        record, of_one = in_use(condition.corruption)
        with_levels = registry.with_levels(of_one, condition.levels)
        key = named_key(seed, condition.corruption)
        return corrupt(key, part.images[rows], record, condition.value, index=part.index[rows], **with_levels)

    classes = 2

    def ask(
        condition: Condition, part: Part, keep: Callable[..., object] | None = None, update: Any = lambda count: None
    ) -> Answer:
        nonlocal classes
        classes = max(classes, int(part.labels.max()) + 1)

        def shown(rows: np.ndarray) -> Any:
            images = show(condition, part, rows)
            if keep:
                keep(rows, images)
            return images

        return answer(predict, shown, part.labels, part.size, dtype, outputs, update)

    with files.lock(path) if path is not None else contextlib.nullcontext():
        kept, answers = None, {}
        if path is not None:
            kept = Folder(path)
            seen = look(parts(), kept)
            common = {"dtype": dtype, "outputs": outputs, "seed": int(seed), "data": dict(seen.digests)}
            if network is not None:
                common["network"] = network
            options_of = {name: in_use(name)[1] for name in used}
            origins = {c: _origin(c, options_of.get(c.corruption), seen.shape, common) for c in conditions}

            def probed(condition: Condition, stored: Probe) -> dict[str, Any]:
                images: dict[int, Any] = {}
                for part, places in seen.at(places_of(stored)):
                    images |= zip(places, show(condition, part, np.arange(len(places))))
                return values_of([images[place] for place in sorted(images)], stored.get("places"))

            stored = reusable(kept, origins, seen, ask, probed)
            answers = {condition: result.correct for condition, result in stored.items()}
        missing = [condition for condition in conditions if condition not in answers]
        total = None if labels is None else len(missing) * len(labels)
        with bars.bar(total, "evaluating", progress) as bar:
            for condition in missing:
                bar.set_description(str(condition))
                found, probing = [], Probing(seen.number if kept else 0, condition)
                for part in parts():
                    found.append(ask(condition, part, probing.keep, bar.update))
                    probing.start += len(part.labels)
                answers[condition] = np.concatenate([part.correct for part in found])
                of_condition = np.concatenate([part.confidence for part in found])
                if condition.corruption == CLEAN:
                    right = answers[condition]
                    if words := below_chance(int(right.sum()), right.size, classes):
                        warnings.warn(words, stacklevel=2)
                if kept:
                    known = {"classes": found[0].classes, "image_shape": [*seen.shape] if len(sizes) < 2 else []}
                    origin = dataclasses.replace(origins[condition], probe=probing.values())
                    origin = dataclasses.replace(origin, recorded={**origin.recorded, **known})
                    kept.write(condition, answers[condition], of_condition, origin)
        answers = {condition: answers[condition] for condition in conditions}  # in the order they were asked for
        if kept:
            benchmarks = [name for name in asked if name in registry.benchmarks()]
            kept.write_tables(answers, {name: list_conditions([name], severity, given)[1:] for name in benchmarks})
    return [Count(c.corruption, c.label, int(right.sum()), right.size) for c, right in answers.items()]


class Probing:
    """Keeps the images of a probe while a condition is shown, part by part; none of clean images."""

    def __init__(self, number: int, condition: Condition) -> None:
        clean = condition.corruption == CLEAN or not number
        self._images = {} if clean else dict.fromkeys(probed_places(number, condition.value).tolist())
        self.start = 0  # place of the first image of a part

    def keep(self, rows: np.ndarray, images: Any) -> None:
        """Keeps those at places of the probe among images whose places in their part are `rows`."""
        for number, place in enumerate((self.start + rows).tolist()):
            if place in self._images:
                self._images[place] = images[number]

    def values(self) -> dict[str, Any] | None:
        """Returns the probe."""
        return values_of(self._images.values(), list(self._images)) if self._images else None


def _origin(condition: Condition, options: Any, shape: Sequence[int], common: Mapping[str, Any]) -> Origin:
    name = condition.corruption
    if options is None:  # clean
        return make(corruption=name, **common)
    given = {"levels": condition.levels, "options": options}
    if options.get("table") == BY_SIZE:  # as in version 0.2, without an option
        given["options"] = {option: value for option, value in options.items() if option != "table"}
    else:
        given["table"] = registry.get(name).describe(shape, options).get("table")
    return make(corruption=name, **given, **common)
