"""Any classifier under corruptions: a function from images to logits, whatever it is written in."""

import contextlib
import dataclasses
import functools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corruptions import files
from corruptions.assets import with_files
from corruptions.core import registry
from corruptions.core.batch import corrupt
from corruptions.core.corruption import Corruption
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.keys import named_key
from corruptions.core.origin import Origin, Probe, Probing, make, probe_shown
from corruptions.core.severity_tables import BY_SIZE, OF_MANY_SIZES, say_one_for_all
from corruptions.scoring.conditions import CLEAN, Condition, Conditions, Severities, expand
from corruptions.scoring.counts import Count, below_chance
from corruptions.scoring.folder import Folder
from corruptions.scoring.predict import BYTES, Classifier, PerImage, Predict
from corruptions.scoring.reuse import Seen, look, reusable
from corruptions.scoring.test_set import Part, TestSet


def evaluate(
    predict: Predict | Classifier,
    images: np.ndarray | Iterable[tuple[Any, Any]] | TestSet,
    labels: Sequence[int] | np.ndarray | None = None,
    *,
    corruptions: str | Sequence[str] = ("imagenet_c",),
    severity: Severities = "levels",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    path: str | os.PathLike | None = None,
    progress: bool | None = None,
    **earlier: Any,
) -> list[Count]:
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = corruptions.evaluate(logits, images, labels, path="mine")
        corruptions.mean_error(counts)
        corruptions.ce_table(counts)                                                                 # CE, mCE

    A test set that does not fit in memory comes as batches: `evaluate(logits, loader)`. What is less common is said by the objects
    of `corruptions.scoring`: `evaluate(Classifier(predict, outputs="probabilities"), TestSet(images, labels, index=index))`.

    Image i under a corruption is `corrupt(fold_in(key(seed), crc32(name)), images, name, severity,
    index=index)[i]`, with the qualified name, as `write_dataset` writes it; but of a C-bar benchmark at another
    size than its own, `write_dataset` takes the ranges of the benchmark, and this function those of the size.

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits [batch_size, classes]: a NumPy or JAX
        array, or any that exports DLPack. It normalises the images, in [0, 1], itself. Or a `Classifier`, which says more of it.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map
        too. Or an iterable of batches (images, labels), with labels=None: a list, a DataLoader without
        shuffling. It is read once for each condition, and once more for `path`; each time it must yield the same images. Where
        batches have several sizes, all images have the severity table `imagenet`, as in `corrupt_each`; the option
        `table="by_size"` of a corruption takes that nearest to the shorter side. Or a `TestSet` of these, its labels and batch size.
      labels: integers [N], below 2^31.
      corruptions: names of corruptions and of benchmarks, or one name.
      severity: `levels` (those that a benchmark selects, else all; for a range 0, 1/4 .. 1),
        `random` (each image draws its own), a number, or several: (1, 3, 5), "1,3,5"; of a benchmark
        that selects levels its severities, 1 the mildest that it selects.
      options: corruption -> its static options, such as calibrated ranges; those of corruptions that are not asked for have
        no effect.
      seed: seed of the corrupted test sets.
      batch_size: images for `predict`, always as many; see `TestSet`, None is its default.
      path: folder of this one classifier, made when missing. It keeps the per-image results under every finished
        condition and their confidence (`confidence.STORED`), so that the same call continues and another one adds corruptions, and gets
        counts.csv and errors.csv of this call. What made a result is kept beside it (`corruptions.core.origin`): before anything
        is reused, `predict` is asked again about 32 images, and a corruption whose code changed must give the pixels that it
        gave. `corruptions.scoring.folder.read_wrong` and `read_confidence` read a folder without `predict`. None writes nothing.
      progress: a progress bar, or lines where tqdm is not installed: True, False, or None for only a terminal.
      **earlier: `dtype`, `outputs`, `network` of `Classifier` and `index` of `TestSet`, keywords of 0.2 that work until 0.4, with
        a FutureWarning.

    Returns:
      List of `Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, what `predict` gave or what `path` holds is not as described.
      corruptions.write.WriteError: the folder is an address such as gs://bucket, not writable, or in use by another
        process.
    """
    if path is not None and not os.fspath(path):
        raise Refused("path", "path=None, or the path of a folder", "an empty one")
    conditions = Conditions(corruptions, severity, options, seed)
    classifier, test_set = _objects(predict, images, labels, batch_size, earlier)
    evaluation = ClassifierEvaluation(classifier, test_set, conditions)
    with files.lock(path) if path is not None else contextlib.nullcontext():
        folder = None if path is None else Folder(path)
        correct = evaluation.run(folder, progress)
        if folder:
            folder.write_tables(correct, conditions.of_benchmarks())
    return [Count.from_correct(*of_one) for of_one in correct.items()]


def _objects(predict, images, labels, batch_size, earlier):
    """Makes the `Classifier` and the `TestSet` of the arguments of `evaluate`."""
    of_classifier = {name: earlier.pop(name) for name in ("dtype", "outputs", "network") if name in earlier}
    of_images = {name: earlier.pop(name) for name in ("index",) if name in earlier}
    if earlier:
        raise TypeError(f"evaluate() got an unexpected keyword argument {next(iter(earlier))!r}")
    given = [*of_classifier, *of_images]
    of_images |= {} if batch_size is None else {"batch_size": batch_size}
    of_images |= {} if labels is None else {"labels": labels}
    for name, of, made in (("predict", of_classifier, Classifier), ("images", of_images, TestSet)):
        if of and isinstance(predict if made is Classifier else images, made):
            raise RefusedType(name, f"{', '.join(of)} as fields of the {made.__name__}", "an argument beside it")
    if given:
        objects = "evaluate(Classifier(predict, dtype, outputs, network), TestSet(images, labels, index))"
        words = f"the keywords {', '.join(given)} of 0.2 work until 0.4; write {objects}, both from corruptions.scoring"
        warnings.warn(words, FutureWarning, stacklevel=3)
    classifier = predict if isinstance(predict, Classifier) else Classifier(predict, **of_classifier)
    return classifier, images if isinstance(images, TestSet) else TestSet(images, **of_images)


@dataclasses.dataclass(frozen=True, eq=False)
class ClassifierEvaluation:
    """A classifier on a test set under conditions."""

    classifier: Classifier
    test_set: TestSet
    conditions: Conditions

    def __post_init__(self) -> None:
        self.test_set.check_batch_size(BYTES[self.classifier.dtype])
        self.options  # noqa: B018 - as they are now: which files they name may change

    @functools.cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """The options of each corruption, with digests of the files that it takes."""
        given = self.conditions.options or {}
        return {name: with_files(name, given.get(name, {})) for name in expand(self.conditions.corruptions)}

    def in_use(self, name: str) -> tuple[str | Corruption, dict[str, Any]]:
        """Returns the corruption of a name and its options, for the sizes of the test set, known after its first pass."""
        found, options = registry.get(name), self.options[name]
        if len(self.test_set.sizes) < 2 or found.for_many_sizes is found or "table" in options:
            return name, options
        say_one_for_all("evaluate")
        return found.for_many_sizes, {"table": OF_MANY_SIZES, **options} if "table" in found.options else options

    def show(self, condition: Condition, part: Part, rows: np.ndarray) -> Any:
        """Shows some images of a part under a condition."""
        if condition.corruption == CLEAN:
            return part.images[rows]
        record, options = self.in_use(condition.corruption)
        with_levels = registry.with_levels(options, condition.levels)
        key = named_key(self.conditions.seed, condition.corruption)
        return corrupt(key, part.images[rows], record, condition.value, index=part.index[rows], **with_levels)

    def classify(self, condition: Condition, part: Part) -> PerImage:
        """Classifies the images of a part under a condition."""
        return self.classifier.classify(functools.partial(self.show, condition, part), part.labels, part.size)

    def under(
        self, condition: Condition, probing: Probing, update: Callable[[int], object] = lambda count: None
    ) -> PerImage:
        """Classifies the test set under a condition and keeps the images of a probe; `update` as of `Classifier`."""
        found, classes, start = [], 2, 0
        for part in self.test_set.parts():

            def show(rows: np.ndarray, part: Part = part, start: int = start) -> Any:
                images = self.show(condition, part, rows)
                probing.keep(start + rows, images)
                return images

            found.append(self.classifier.classify(show, part.labels, part.size, update))
            start += len(part.labels)
            classes = max(classes, int(part.labels.max()) + 1)
        result = PerImage.joined(found)
        counted = int(result.correct.sum()), result.correct.size
        if condition.corruption == CLEAN and (words := below_chance(*counted, classes)):
            warnings.warn(words, stacklevel=4)  # at the line that called `evaluate`
        return result

    def run(self, folder: Folder | None, progress: bool | None) -> dict[Condition, np.ndarray]:
        """Evaluates the conditions that a folder lacks, and stores them; returns which images are right, bool [N], of all.

        Raises ValueError where the folder holds results that this would not compute.
        """
        stored = None if folder is None else Stored(self, folder)
        correct = stored.reusable() if stored else {}
        if folder is not None:
            folder.prefer(correct)
        missing = [condition for condition in self.conditions.listed if condition not in correct]
        whole = self.test_set.whole
        with files.bar(len(missing) * len(whole.labels) if whole else None, "evaluating", progress) as bar:
            for condition in missing:
                bar.set_description(str(condition))
                probed = stored.seen.number if stored and condition.corruption != CLEAN else 0
                probing = Probing(probed, condition.value)
                result = self.under(condition, probing, bar.update)
                correct[condition] = result.correct
                if stored:
                    stored.add(condition, result, probing.values())
        return {condition: correct[condition] for condition in self.conditions.listed}


class Stored:
    """The results folder of an evaluation, and what made its results.

    Reads the test set once; see `Folder` for what is refused.
    """

    def __init__(self, evaluation: ClassifierEvaluation, folder: Folder) -> None:
        self.folder, self._evaluation = folder, evaluation
        self.seen: Seen = look(evaluation.test_set.parts(), folder)
        self._origins = {condition: self._origin(condition) for condition in evaluation.conditions.listed}

    def reusable(self) -> dict[Condition, np.ndarray]:
        """Returns which images are right, bool [N], of the stored conditions; ValueError where others made them."""
        found = reusable(self.folder, self._origins, self.seen, self._evaluation.classify, self._probe)
        return {condition: result.correct for condition, result in found.items()}

    def add(self, condition: Condition, result: PerImage, probe: Probe | None) -> None:
        """Writes the results under a condition."""
        one_size = len(self._evaluation.test_set.sizes) < 2
        origin = self._origins[condition]
        recorded = {**origin.recorded, "classes": result.classes, "image_shape": [*self.seen.shape] if one_size else []}
        origin = dataclasses.replace(origin, probe=probe, recorded=recorded)
        self.folder.write(condition, result.correct, result.confidence, origin)

    def _probe(self, condition: Condition, stored: Probe) -> dict[str, Any]:
        """Corrupts the images of a stored probe as this evaluation does."""

        def show(places: np.ndarray) -> list[Any]:
            images: dict[int, Any] = {}
            for part, of_part in self.seen.at(places):
                images |= zip(of_part, self._evaluation.show(condition, part, np.arange(len(of_part))))
            return [images[place] for place in places.tolist()]

        return probe_shown(show, self.seen.number, condition.value, stored)

    def _origin(self, condition: Condition) -> Origin:
        classifier, name = self._evaluation.classifier, condition.corruption
        common: dict[str, Any] = {"dtype": classifier.dtype, "outputs": classifier.outputs, "corruption": name}
        common |= {"seed": int(self._evaluation.conditions.seed), "data": dict(self.seen.digests)}
        if classifier.network is not None:
            common["network"] = classifier.network
        if name == CLEAN:
            return make(**common)
        options = self._evaluation.in_use(name)[1]
        if options.get("table") == BY_SIZE:  # as in version 0.2, without an option
            options = {option: value for option, value in options.items() if option != "table"}
        else:
            common["table"] = registry.get(name).describe(self.seen.shape, options).get("table")
        return make(levels=condition.levels, options=options, **common)
