"""Trained models on naturally shifted test sets, and on clean images of the same classes.

    natural/imagenet_r    images of ImageNet-R; answers among its 200 classes
    clean/imagenet_r      clean test images of the same 200 classes; answers among them

The second row exists if a set has only some of the model's classes, or counts several as one; else `clean` is that row.
"""

import os
from collections.abc import Callable, Iterable

import numpy as np
from ml_collections import ConfigDict

from analysis.frames import CLEAN, NATURAL, OF_CLASSES
from corruptions.scoring.conditions import Condition
from data import Dataset, Split, hosts
from data.natural import NaturalImages, open_natural
from data.natural.sets import listed
from evaluation.evaluate import Ask, Evaluation
from evaluation.shown import Shown, ShownNatural
from runtime import files
from training import memory


def open_evaluations(
    open_one: Callable[..., Evaluation],
    config: ConfigDict,
    dataset: Dataset,
    shown: Shown,
    workdir: os.PathLike,
    ask: Ask,
) -> list[Evaluation]:
    """Opens the evaluation of every model on the sets of config.eval.natural; see `Evaluation`.

    Args:
      open_one: `Evaluation` of the models.
      config: `eval.natural`, `eval.natural_dir`, and `dataset.resize` and `dataset.turn` of the models.
      dataset, shown: the models' dataset, whose class names tell which logits count, and its test images.
      workdir, ask: see `Evaluation`.

    Raises:
      FileNotFoundError, ValueError: a set is not there, or not of the models' classes.
      WorkdirError: the workdir holds answers to other images.
    """
    size, resize = dataset.image_shape[0], config.dataset.get("resize", "crop")
    folder = files.local(config.eval.natural_dir) or None
    given = {"resize": resize, "turn": config.dataset.get("turn", False)}
    opened = [open_natural(name, folder, size, **given) for name in listed(config.eval.natural)]
    for images in opened:
        hosts.check(images.name, {"test": images.provenance["sha256"]}, [images.provenance["source"]])
    evaluations = []
    for images in opened:
        groups = images.classes.of_model(dataset.class_names, images.name)
        for condition, natural in _conditions(images, groups, dataset, shown):
            evaluations.append(open_one(natural, [condition], workdir, ask))
    return evaluations


def _conditions(
    images: NaturalImages, groups: np.ndarray, dataset: Dataset, shown: Shown
) -> Iterable[tuple[Condition, ShownNatural]]:
    """Yields (condition, shown images) for a set, and for clean images of its classes."""
    one_to_one = (groups >= 0).all() and len(set(groups.tolist())) == len(groups)
    meaning = np.full(images.classes.number, -1)  # the class of the model for each label of the set
    meaning[groups[groups >= 0]] = np.arange(len(groups)) if one_to_one else groups[groups >= 0]
    counted = None if one_to_one else groups  # None: all classes are answers, as on the clean images
    of_set = Condition(NATURAL + images.name, "0")
    yield of_set, _shown(images.split, meaning[images.split.labels], counted, shown, images.provenance)
    if counted is not None:
        source = {"images": f"{CLEAN} test images of {dataset.name}", "digests": dict(shown.digests)}
        labels = groups[np.asarray(shown.split.labels)]
        if (labels < 0).all():
            raise ValueError(
                f"expected clean test images of the classes of {images.name}, found none among the {len(labels)} of "
                f"{dataset.name}; show more of them (config.dataset.test_limit, config.eval.images)"
            )
        yield Condition(OF_CLASSES + images.name, "0"), _shown(shown.split, labels, counted, shown, source)


def _shown(split, labels, groups, shown, source):
    """Shows the images whose label is not -1; the model lacks the other classes of the set."""
    index = np.flatnonzero(labels >= 0)
    if len(index) == len(split):
        labelled = Split(split.images, labels.astype(np.int32), split.index)
    else:
        labelled = choose(split, index, labels[index])
    return ShownNatural(labelled, groups, shown.mesh, shown.batch_size, {**source, "number": len(index)})


def choose(split: Split, index: np.ndarray, labels: np.ndarray) -> Split:
    """Chooses images of a split and gives them other labels; images on the host are read when they are asked for."""
    images = split.images[index] if memory.on_device(split) else _Chosen(split.images, index)
    return Split(images, labels.astype(np.int32), np.asarray(split.index)[index])


class _Chosen:
    """Reads chosen images of an array on the host by slices, [M, H, W, 3]."""

    def __init__(self, images, index: np.ndarray):
        self._images, self._index = images, index
        self.shape = (len(index), *images.shape[1:])

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, span: slice) -> np.ndarray:
        return np.asarray(self._images[self._index[span]])
