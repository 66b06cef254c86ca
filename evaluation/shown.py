"""Test images under a condition: the same for all models and at all times.

shown = Shown.of(config, split, mesh, dataset)   images that are corrupted here
shown = ShownStored(dataset, mesh, 100, about)   a corrupted dataset on disk
shown = ShownNatural(split, groups, ...)         images of other classes, unchanged
for images, labels in shown.under(condition):    uint8 [n, H, W, 3] and int32 [n], on the devices
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import chex
import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from analysis.answers import Record
from analysis.errors import reference as named
from analysis.errors.reference import FROST, LISTED, ORIGINAL, PREPROCESSING
from corruptions.core import origin
from corruptions.core.keys import image_index, named_key, prng
from corruptions.core.origin import Origin, Probe
from corruptions.core.registry import with_levels
from corruptions.scoring.conditions import CLEAN, CLEAN_IMAGES, RANDOM, Condition
from corruptions.write.sources import safe_name
from data import Dataset, Split, decode
from data.corrupted import CorruptedDataset
from data.dataset import same_images as same_splits
from runtime import distributed
from training import augmentation, memory
from training.sections import TrainSettings

Piece = tuple[jax.Array, jax.Array]
"""(images uint8 [n, H, W, 3], labels int32 [n])."""


class Superclasses(NamedTuple):
    """The classes of the test images' labels, each made of classes of the models."""

    reduce: Literal["mean", "sum"]  # whether a score is the mean or the sum of its members' probabilities
    members: tuple[tuple[int, ...], ...]  # the models' classes that each one holds


class _Images:
    """Base of the kinds of test images: the condition may change, the images stay."""

    origin: Origin | None = None  # of images that are corrupted here

    def under(self, condition: Condition) -> Self:
        """Shows the same images under another condition."""
        return dataclasses.replace(self, condition=condition)

    def __len__(self) -> int:
        return len(self.split)

    @property
    def at_once(self) -> int:
        """Counts the images that a network classifies at once: `batch_size`, but no more than there are."""
        return min(self.batch_size, len(self))

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The shape of an image, (H, W, 3)."""
        return tuple(self.split.images.shape[1:])

    def _record(self, shown: Mapping[str, Any], about: Mapping[str, Any]) -> Record:
        name, label, levels = self.condition.corruption, self.condition.label, self.condition.levels
        return Record(name, label, levels, len(self), dict(shown), dict(about))


@dataclasses.dataclass(frozen=True, eq=False)
class Shown(_Images):
    """A test set under a condition, corrupted on the devices; iterate over it for its `Piece`s.

    Draws depend on (seed, corruption, severity, index of the image) and on nothing else: batch size, devices and pieces
    do not change a pixel. It comes in pieces of whole batches, see `training.memory.pieces`.
    """

    split: Split  # the test images, on the devices or on the host
    mesh: jax.sharding.Mesh  # devices that corrupt and classify
    batch_size: int  # images that a model classifies at once; it affects only speed and memory
    seed: int = 0  # seed of the draws
    # corruption -> its static options, such as calibrated ranges
    options: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    # corruption and severity; `under` gives the same images under another condition
    condition: Condition = CLEAN_IMAGES
    # digests of the test images, their labels and index, if known
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # names of the dataset, see `name_images`
    superclasses: Superclasses | None = None  # whose numbers the labels are; None where they are the models' classes
    probing: origin.Probing = dataclasses.field(init=False)  # keeps those of a probe while they are shown
    groups: ClassVar[None] = None  # every class counts separately

    @classmethod
    def of(cls, config: ConfigDict, split: Split, mesh: jax.sharding.Mesh, dataset: Dataset | None = None) -> "Shown":
        """Shows `split` as config.eval says, with the corruptions' options of config.train.

        Args:
          config: config of the command.
          split, mesh: as above.
          dataset: dataset of the test images, for their digests and names.
        """
        options = TrainSettings.of(config.train).corruption_options
        digests = digests_of(dataset) if dataset else {}
        about = name_dataset(dataset, config.get("imports", ())) if dataset else {}
        return cls(split, mesh, config.eval.batch_size, config.eval.seed, options, digests=digests, about=about)

    def __post_init__(self) -> None:
        object.__setattr__(self, "probing", origin.Probing(len(self), self.condition.value))

    def showing(self, split: Split) -> "Shown":
        """Shows other images, or some of them, under the same condition."""
        return dataclasses.replace(self, split=split)

    def __iter__(self) -> Iterator[Piece]:
        start = 0
        for part in memory.pieces(self.split, self.batch_size, self.mesh):
            images = self.showing(part).images()
            self.probing.keep(np.arange(start, start + len(part)), images)
            start += len(part)
            yield images, jnp.asarray(part.labels)

    @property
    def record(self) -> Record:
        """Records the condition, and the images, seed and options that its pixels depend on."""
        name, shown, about = self.condition.corruption, {"images": dict(self.digests)}, dict(self.about)
        if self.superclasses:
            shown["superclasses"] = self.superclasses.reduce
        if name != CLEAN:
            options = self.options.get(name, {})
            shown |= {"seed": self.seed, "prng": prng(), "options": options}
            shape = self.split.images.shape[1:]
            about["described"] = named.of_corruption(name, shape, options, self.condition.levels)
        return self._record(shown, about)

    def images(self) -> jax.Array:
        """Corrupts all images at once: uint8 [N, H, W, 3]."""
        chex.assert_rank(self.split.images, 4)
        name = self.condition.corruption
        if name == CLEAN:
            return self.split.images
        options = with_levels(self.options.get(name, {}), self.condition.levels)
        index, value = image_index(self.split.index, len(self.split.index)), self.condition.value
        key = named_key(self.seed, name)
        return augmentation.corrupt_on_mesh(self.mesh, key, self.split.images, name, value, index, options)

    @property
    def origin(self) -> Origin | None:
        """Records the code that the pixels of a corruption follow from, with a probe of images that were shown."""
        name = self.condition.corruption
        if name == CLEAN:
            return None
        values = self.probing.values(distributed.fetch)
        return origin.make(corruption=name, imports=self.about.get("imports", ()), probe=values or origin.UNKNOWN)

    def probe(self, stored: Probe | None = None) -> Probe:
        """Returns the probe of the corrupted images, of those that were shown if they are there; as a stored one if given."""
        alike = stored is None or stored.get("places") == self.probing.places.tolist()
        return (alike and self.probing.values(distributed.fetch)) or probe(self.record, self.split, stored)


def digests_of(dataset: Dataset) -> Mapping[str, Any]:
    """Returns the digests of the test images of a dataset, of their labels and their index."""
    facts = dataset.provenance.get("test", {})
    return facts.get("sha256", facts.get("sample", {}))


def same_images(stored: Record, now: Record) -> bool:
    """Whether two records of answers are of the same test images; drawn ones as `data.dataset.same_images` says."""
    facts = (
        {"sha256": record.shown.get("images", {})}
        | {key: value for key, value in record.about.items() if key == "drawn"}
        for record in (stored, now)
    )
    return same_splits(*facts)


def probe(record: Record, split: Split, stored: Probe | None = None) -> Probe:
    """Corrupts images of a split as the record of their answers says, and returns their probe, as a stored one if given."""
    name, given = record.corruption, {key: _tuple(value) for key, value in record.shown["options"].items()}
    return origin.probe(
        *(name, split.images, None if record.severity == RANDOM else record.severity),
        key=named_key(record.shown["seed"], name),
        index=image_index(distributed.fetch(split.index), len(split)),
        options=with_levels(given, record.levels),
        stored=stored,
        fetch=distributed.fetch,
    )


def _tuple(value):
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True, eq=False)
class ShownStored(_Images):
    """A stored corrupted dataset under a condition; iterate over it for its `Piece`s."""

    dataset: CorruptedDataset  # the images and labels of all its conditions
    mesh: jax.sharding.Mesh  # devices that classify
    batch_size: int  # images that are read and classified at once
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # names of the dataset, see `name_images`
    condition: Condition | None = None  # one of `conditions`
    groups: ClassVar[None] = None
    superclasses: ClassVar[None] = None

    @property
    def conditions(self) -> list[Condition]:
        """Lists the conditions of the dataset."""
        return [Condition(name, str(severity)) for name, severity in self.dataset.conditions()]

    def __len__(self) -> int:
        return self.dataset.number

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The shape of an image, (H, W, 3)."""
        return tuple(self.dataset.image_shape)

    def __iter__(self) -> Iterator[Piece]:
        name, severity = self.condition.corruption, self.condition.label  # the dataset's names, `random` among them
        classes = self.about.get("classes", np.inf)
        for images, labels in self.dataset.batches(name, severity, self.batch_size):
            if labels.max() >= classes:
                raise ValueError(
                    f"{self.dataset.path}: expected labels of the {classes} classes of {self.about['dataset']}, found "
                    f"{labels.max()}"
                )
            yield jnp.asarray(images), jnp.asarray(labels)

    @property
    def record(self) -> Record:
        """Records the condition and the settings that its stored pixels were made with."""
        name, about = self.condition.corruption, dict(self.about)
        if name != CLEAN:
            about["described"] = stored_description(self.dataset, name)
        return self._record({"source": stored_source(self.dataset, self.condition)}, about)


@dataclasses.dataclass(frozen=True, eq=False)
class ShownNatural(_Images):
    """Images of a naturally shifted test set, or clean ones of the same classes; iterate over it for its `Piece`s."""

    split: Split  # images, with labels as `groups` counts them
    # int32 [classes of the model], see `evaluation.correctness.ask`; None where labels are the model's classes
    groups: np.ndarray | None
    mesh: jax.sharding.Mesh  # devices that classify
    batch_size: int  # images that are classified at once
    source: Mapping[str, Any]  # where the pixels come from, for JSON
    condition: Condition | None = None  # the only condition
    superclasses: ClassVar[None] = None

    def __iter__(self) -> Iterator[Piece]:
        for part in memory.pieces(self.split, self.batch_size, self.mesh):
            yield jnp.asarray(part.images), jnp.asarray(part.labels)

    @property
    def record(self) -> Record:
        """Records where the pixels come from."""
        return self._record({"source": dict(self.source)}, {})


Images = Shown | ShownStored | ShownNatural
"""Test images under a condition."""


# Names of the test images, for readers of answers: `analysis.errors` compares errors of the same names only.

IMAGENET = "imagenet"
_NONE = "none"
_FOLDER = "image_folder"  # a dataset that its classes identify, not its name
_IDENTITY = ("format", "layout", "seed", "prng", "jpeg_quality", "source", "images", "image_shape", "class_names")
_SETTINGS = ("levels", "table", "options", "rounding")


def name_images(
    dataset: str, classes: int, shape: Sequence[int], preprocessing: str, imports: Iterable[str] = ()
) -> dict[str, Any]:
    """Names the test images of answers, for `analysis.answers.Record`.

    Args:
      dataset: its name, "" if it is not known.
      classes: number of classes.
      shape: (H, W, 3).
      preprocessing: preprocessing of the test images, "" if unknown.
      imports: modules of the user's, which a reader of the answers needs too.
    """
    names = {"dataset": dataset, "classes": classes, "image_shape": list(shape), "preprocessing": preprocessing}
    return names | {"imports": list(imports)}


def name_dataset(dataset: Dataset, imports: Iterable[str] = ()) -> dict[str, Any]:
    """Names the test images of a dataset, see `name_images`."""
    name, listed = dataset.name, dataset.provenance.get("listed")
    if name == _FOLDER:
        name += f":{','.join(dataset.class_names)}"
    if listed:
        name += f", {listed['number']} {LISTED} {listed['sha256'][:12]}"
    words = preprocessing(dataset.provenance)
    drawn = {key: value for key, value in dataset.provenance.get("test", {}).items() if key == "drawn"}
    return name_images(name, dataset.num_classes, dataset.image_shape, words, imports) | drawn


def name_stored(dataset: Dataset, stored: CorruptedDataset, imports: Iterable[str] = ()) -> dict[str, Any]:
    """Names the images of a corrupted dataset on disk, see `name_images`; `stored` is true.

    A dataset that was published without a manifest has the published preprocessing.

    Raises:
      ValueError: it has other classes than `dataset`, as far as its files tell.
    """
    _refuse_other_classes(dataset, stored)
    manifest = stored.provenance.get("manifest")
    published = PREPROCESSING if dataset.name == IMAGENET and stored.image_shape[0] == 224 else _NONE
    words = published if manifest is None else _in_words(manifest.get("source", {}))
    words = stored.preprocessing or words
    return name_images(dataset.name, dataset.num_classes, stored.image_shape, words, imports) | {"stored": True}


def _refuse_other_classes(dataset, stored):
    names, own = stored.class_names, tuple(map(safe_name, dataset.class_names))
    if names is None or all(name.isdecimal() for name in names):  # numbers follow from the labels
        return
    if len(names) != len(own):
        raise ValueError(
            f"expected a stored dataset of {len(own)} classes, as many as {dataset.name} has, found {len(names)} in {stored.path}"
        )
    if differ := [pair for pair in zip(own, map(safe_name, names), strict=True) if pair[0] != pair[1]]:
        raise ValueError(
            f"expected a stored dataset with the classes of {dataset.name}, such as {differ[0][0]}, found {differ[0][1]} in "
            f"its place in {stored.path}"
        )


def stored_description(stored: CorruptedDataset, name: str) -> dict[str, Any]:
    """Describes a corruption of a dataset on disk.

    A dataset that was published without a manifest has the published severities for its image size, the pixels that the
    present version of the corruption reproduces and, if it is ImageNet-C, the original photographs of frost.
    """
    manifest = stored.provenance.get("manifest")
    entry = (manifest or {}).get("corruptions", {}).get(name, {})
    options = dict(entry.get("options", {})) | ({"table": entry["table"]} if entry.get("table") else {})
    version = None if manifest is None else entry.get("version") or 1
    words = named.of_corruption(name, stored.image_shape, options, version=version)
    return words | {"frost": ORIGINAL} if manifest is None and name == FROST else words


def stored_source(stored: CorruptedDataset, condition: Condition) -> dict[str, Any]:
    """Records the folder of a corrupted dataset and what tells its pixels from others: the settings of the corruption
    in its manifest, or a digest of the files where a published dataset has none (`CorruptedDataset.content`).
    """
    source = {key: value for key, value in stored.provenance.items() if key != "manifest"}
    manifest = stored.provenance.get("manifest")
    if manifest is None:
        return source | {"content": stored.content(condition.corruption, condition.label)}
    entry = manifest.get("corruptions", {}).get(condition.corruption, {})
    settings = {"corruption": {key: entry.get(key) for key in _SETTINGS}}
    return source | {key: manifest.get(key) for key in _IDENTITY} | settings


def preprocessing(provenance: Mapping[str, Any]) -> str:
    """Describes the preprocessing of a dataset's test images in words; `none` for images as published."""
    words = provenance.get("preprocess") or provenance.get("made_from", {}).get("preprocess") or _NONE
    return words.rpartition("test: ")[2]


def _in_words(source):
    """Describes the preprocessing of `corruptions.write` in words."""
    recipe, size = source.get("preprocess", _NONE), source.get("size")
    if recipe == IMAGENET and size:
        return decode.description(decode.sides(size))
    return recipe if recipe == _NONE else f"{recipe} {size}"
