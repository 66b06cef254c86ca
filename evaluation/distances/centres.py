"""Centres of corruptions, and distances to them, in the feature space of a trained network.

    measured = Measured.by(trained, config.msd, workdir, "msd", determining)
    centre = measured.centre(condition)                    mean features of a corruption at a severity
    distances = measured.scheme_distances(scheme, centres)

Results go to a folder of the workdir and are read back by the next run with the same settings, network and images; each
file holds their digests; a file with other digests is measured again.
"""

import dataclasses
import pathlib
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from analysis import frames
from analysis.distances import msd_mmd
from analysis.distances.msd_mmd import Stream
from corruptions.core import origin
from corruptions.core.keys import named_key
from corruptions.core.registry import with_levels
from corruptions.files import digest_of
from corruptions.scoring.conditions import Condition
from data.dataset import Dataset, Split, cut
from evaluation import bound, trained_models
from evaluation.distances import features
from evaluation.distances.features import Transform
from runtime import artifacts, files, meshes, workdirs
from runtime.log import log
from training import study
from training.checkpoints import digest
from training.sections import TrainSettings

Target = tuple[str, int | float | str]
"""(corruption, severity as tables hold it)."""
IMAGES, DRAWS, TRANSFORMS, SUBSETS, PAIRS = range(5)  # streams of random choices
_REMEDY = "remove it to measure it again"


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """A network, images and the folder of results of a measurement of features."""

    asked: ConfigDict  # settings as config.msd
    extractor: features.Extractor  # the network and the images
    split: Split  # training images, from which the extractor's are chosen
    folder: pathlib.Path  # folder of the results
    options: Mapping[str, Mapping[str, Any]]  # corruption -> its static options
    # digests of network, images and settings, which every file holds
    made_from: Mapping[str, str] = dataclasses.field(default_factory=dict)
    imports: Sequence[str] = ()  # the user's modules, whose code takes part
    _said: set[str] = dataclasses.field(default_factory=set)
    _probes: dict[tuple[str, float | None, bool], origin.Probe] = dataclasses.field(default_factory=dict)

    def with_images(self, rows: np.ndarray, weights: np.ndarray) -> features.Extractor:
        """Gives the network with other training images, `rows` of the split, and weights [G, rows] over them."""
        return dataclasses.replace(
            self.extractor, images=cut(self.split, rows, self.extractor.images.shape[1]), weights=weights
        )

    @classmethod
    def by(
        cls,
        trained: ConfigDict,
        asked: ConfigDict,
        workdir: pathlib.Path,
        out: str,
        determining: Mapping[str, Any],
        dataset: Dataset | None = None,
    ) -> "Measured":
        """Opens the folder `out` of a workdir of `evaluation.trained_models.open_workdir`.

        Args:
          trained: config of the workdir's models.
          asked: settings as config.msd: model, model_seed, seed, images, draws, halves, chunk ...
          workdir, out: folder of the model that measures, and the name of the folder in it.
          determining: the settings that results depend on, beside the options of corruptions.
          dataset: dataset of `trained`, if it was loaded before.

        Raises:
          ValueError: a model or a number of images that is not there.
          WorkdirError: the folder holds results of other settings.
        """
        options = TrainSettings.of(trained.train).corruption_options
        extractor, split = _extractor(trained, asked, workdir, dataset)
        folder = workdir / out
        folder.mkdir(parents=True, exist_ok=True)
        refusal = f"{folder} holds results of other settings; name another folder or use the same settings"
        given = {**determining, "options": options}
        workdirs.claim(folder / "settings.json", given, refusal)
        images = digest_of(np.asarray(extractor.images))
        made_from = {"model": digest(extractor.state), "images": images, "settings": artifacts.digest(given)}
        return cls(asked, extractor, split, folder, options, made_from, tuple(trained.get("imports", ())))

    def generator(self, stream: int, name: str) -> np.random.Generator:
        """Makes the generator of one of the streams of random choices for a name."""
        return _generator(self.asked, stream, name)

    def key(self, name: str) -> jax.Array:
        """Makes the key for drawing the transforms of a name."""
        return named_key(self.asked.seed, name)

    def centre(self, condition: Condition) -> np.ndarray:
        """Measures the mean features of a corruption at a severity: [1 + halves, D], all images first."""
        parts = self.part(self.transform(condition), condition.value)
        return self.once(f"centres/{condition.stem}.npz", "centre", lambda: self._centre(condition), parts)

    def _centre(self, condition):
        transform, asked = self.transform(condition), self.asked
        name = f"centre {condition.stem}"
        number = asked.draws if transform.random else 1
        drawn = self._drawn(transform, number, name).astype(np.float64)
        weights = msd_mmd.half_weights(asked.draws, asked.halves, self.generator(DRAWS, name)).astype(np.float64)
        # einsum in float64: the mean of many float32 features.
        return np.einsum("gk,kgd->gd", weights, drawn) if transform.random else drawn[0]

    def features(self, condition: Condition) -> np.ndarray:
        """Measures the features of each draw of a corruption at a severity: float32 [transforms, D]."""

        def measure():
            return self._drawn(self.transform(condition), self.asked.transforms, f"toy {condition.stem}")[:, 0]

        parts = self.part(self.transform(condition), condition.value)
        return self.once(f"features/{condition.stem}.npz", "features", measure, parts)

    def _drawn(self, transform, number, name):
        """Computes the features [number, G, D] of the first draws of a transform under the key of a name."""
        return np.concatenate(list(self.extractor.stream(transform, self.key(name), number, description=name)))

    def scheme_distances(
        self,
        scheme: Transform,
        centres: Mapping[Target, np.ndarray],
        saw: Callable[[int], object] = lambda images: None,
    ) -> dict[Target, np.ndarray]:
        """Measures MSD and MMD of a scheme to every centre (`centre`): [2, 1 + halves] each; first over all images.

        The state is saved every minute: stopped, it continues from there, to the same bits as long as the chunks are the
        same. `saw` is called with the number of images that went through the network.
        """
        path, number, parts = self._scheme_file(scheme), self._number(scheme), self.part(scheme)
        known, digests = self._distances(path, scheme, centres)
        missing = {_name(target): centre for target, centre in centres.items() if _name(target) not in known}
        if missing:
            members = msd_mmd.halves(number, self.asked.halves, self.generator(TRANSFORMS, scheme.name))
            unfinished = self.folder / "unfinished" / path.name
            made_from = {
                **self.made_from,
                msd_mmd.CENTRES: digests | {_name(at): _digest(centres[at]) for at in centres},
            }
            kept, begun = self._kept(unfinished, parts)
            if begun and begun != made_from[msd_mmd.CENTRES]:
                kept = {}
            running = Running(unfinished, kept, made_from, missing, members, parts)
            key, first, images = self.scheme_key(scheme), running.start, len(self.extractor.images)
            for chunk in self.extractor.stream(scheme, key, number - first, first=first, description=scheme.name):
                running.add(chunk)
                saw(len(chunk) * images)
            known |= running.distances()
            bound.write(path, known, {**made_from, msd_mmd.SCHEME: scheme.name}, parts)
            running.remove()
        return {target: known[_name(target)] for target in centres}

    def scheme_key(self, scheme: Transform) -> jax.Array:
        """Makes the key for drawing the transforms of a scheme."""
        return self.key(f"scheme {scheme.name}")

    def params(self, scheme: Transform, numbers: Sequence[int] | np.ndarray) -> dict[str, jax.Array]:
        """Draws the parameters of a scheme's transforms with these numbers, along the first axis."""
        return features.drawn(scheme, self.scheme_key(scheme), numbers, tuple(self.extractor.images.shape[1:]))

    def _distances(self, path, scheme, centres):
        """Reads ({name: distances}, {name: digest of its centre}), without those to centres that are others now."""
        known, digests = self._kept(path, self.part(scheme))
        other = {
            name for at, centre in centres.items() if digests.get(name := _name(at)) not in (None, _digest(centre))
        }
        return tuple({name: value for name, value in one.items() if name not in other} for one in (known, digests))

    def images_left(self, scheme: Transform, centres: Mapping[Target, np.ndarray]) -> int:
        """Counts the images that `scheme_distances` will show to the network."""
        done = set(map(_name, centres)) <= self._distances(self._scheme_file(scheme), scheme, centres)[0].keys()
        return 0 if done else self._number(scheme) * len(self.extractor.images)

    def _scheme_file(self, scheme):
        return self.folder / "schemes" / f"{scheme.name.replace('/', '.')}.npz"

    def _number(self, scheme):
        return self.asked.transforms if scheme.random else 1

    def once(
        self,
        file: str,
        name: str,
        measure: Callable[[], np.ndarray],
        parts: bound.Parts,
        centres: np.ndarray | None = None,
    ) -> np.ndarray:
        """Reads an array of an earlier run from a file of the folder, or measures and writes it.

        Args:
          file, name: file in the folder, and name of the array in it.
          measure: measures the array.
          parts: what the images were transformed with.
          centres: centres that distances were measured to.
        """
        path, digests = self.folder / file, {} if centres is None else {name: _digest(centres)}
        known, before = self._kept(path, parts)
        if name not in known or (before and before != digests):
            known = {name: measure()}
            bound.write(path, known, {**self.made_from} | ({msd_mmd.CENTRES: digests} if digests else {}), parts)
        return known[name]

    def _kept(self, path: pathlib.Path, parts: bound.Parts) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """Reads the arrays of a file of results, and digests of the centres that they belong to.

        Both are empty, with one warning, if the file was made from other inputs, or by other code.
        """

        def fits(made_from):
            other = [name for name, value in self.made_from.items() if made_from.get(name) != value]
            if other and not self._said:
                log.warning(
                    "%s holds results of another %s: they are measured again.", self.folder, " and ".join(other)
                )
            self._said.update(other)
            return not other

        found = bound.read(path, parts, _REMEDY, fits)
        return (found.arrays, found.made_from.get(msd_mmd.CENTRES, {})) if found else ({}, {})

    def part(self, transform: Transform, severity: float | None = None) -> bound.Parts:
        """Gives what binds results to the code of a transform; none for images as they are.

        Args:
          transform: a corruption or a scheme.
          severity: of the corruption; None where each draw has its own.
        """
        if not transform.random and transform.name == features.IDENTITY.name:
            return {}
        name = transform.corruption or origin.UNKNOWN
        made = origin.make(corruption=name, imports=self.imports)

        def probe(stored):
            earlier = stored is not None and "places" not in stored
            if (at := (transform.name, severity, earlier)) not in self._probes:  # files of many pairs share it
                places = origin.probed_places(1 if earlier else len(self.extractor.images), 0)
                number = 16 if severity is None else 1  # transforms
                shown = self.extractor.first(transform, self.key(transform.name), number, places)
                shown_at = None if earlier else np.resize(places, len(shown))
                self._probes[at] = origin.values_of(shown, shown_at)
            return self._probes[at]

        return {transform.name: bound.Part(made, probe)}

    def transform(self, condition: Condition) -> Transform:
        """Gives the distribution of a corruption at a severity; clean images have the identity."""
        if condition.corruption == frames.CLEAN:
            return features.IDENTITY
        options = with_levels(self.options.get(condition.corruption, {}), condition.levels)
        return features.of_corruption(condition.corruption, condition.value, options)


def _name(target):
    return f"{target[0]}|{target[1]}"


def _digest(centre):
    return digest_of(np.asarray(centre))


def setting(asked: ConfigDict, names: Iterable[str]) -> dict[str, Any]:
    """Picks the settings that results depend on, by name."""
    return {name: asked[name] for name in names}


def _extractor(
    trained: ConfigDict, asked: ConfigDict, workdir: pathlib.Path, dataset: Dataset | None
) -> tuple[features.Extractor, Split]:
    mesh = meshes.data_mesh()
    if dataset is None:
        dataset = study.load_dataset(trained)
    split = dataset.train  # stays where it lies, because only a few of many images are used
    if asked.images > len(split):
        raise ValueError(
            f"expected at most {len(split)} images, as many as there are to train on, found {asked.images}"
        )
    models = trained_models.list_models(workdir)
    key = asked.model, asked.model_seed
    if key not in models:
        known = ", ".join(f"{name} seed {seed}" for name, seed in models)
        raise ValueError(f"expected config.msd.model and model_seed among {known}, found {key[0]} seed {key[1]}")
    rng = _generator(asked, IMAGES, "")
    rows = np.sort(rng.choice(len(split), asked.images, replace=False))
    weights = msd_mmd.half_weights(asked.images, asked.halves, rng)
    images = cut(split, rows, dataset.image_shape[0])
    if asked.draws:  # without draws each image has its own draw: `sampling.centre` reads images in pieces
        images = meshes.place_tree(images, meshes.replicated(mesh))
    model = trained_models.read_model(models[key], dataset.num_classes, dataset.image_shape[0], mesh)
    return features.Extractor(mesh, *model, images, weights, asked.chunk), split


def _generator(asked: ConfigDict, stream: int, name: str) -> np.random.Generator:
    return np.random.default_rng((asked.seed, stream, zlib.crc32(name.encode())))


_SAVE_SECONDS = 60.0
_TARGETS = "targets"


class Running:
    """A `Stream` to centres, of a known number of transforms, and the file that keeps its state.

    Continued with the same chunks it ends in the same bits as one that was never stopped. `start` is the number of
    transforms that were added.

    Args:
      path: path of the file, which exists while the scheme is unfinished.
      kept: arrays of the file, empty without a file to continue.
      made_from: digests that are written to the file.
      centres: {name: [G, D]}.
      members: bool [G, number], which transforms count in which weighting.
      parts: what the images are transformed with.
    """

    def __init__(
        self,
        path: pathlib.Path,
        kept: Mapping[str, np.ndarray],
        made_from: Mapping[str, Any],
        centres: Mapping[str, np.ndarray],
        members: np.ndarray,
        parts: bound.Parts,
    ):
        self._path, self._made_from, self._members, self._parts = path, made_from, members, parts
        self._names = list(centres)
        self._stream = Stream(np.stack(list(centres.values()), axis=1))
        self._saved = time.monotonic()
        self.start = 0
        if kept.get(_TARGETS, np.array([])).tolist() == self._names:
            self._stream.resume({name: array for name, array in kept.items() if name != _TARGETS})
            self.start = int(self._stream.number[0])  # the first weighting takes all transforms

    def add(self, features: Sequence[np.ndarray] | np.ndarray) -> None:
        """Adds the features [K, G, D] of the next transforms."""
        end = self.start + len(features)
        self._stream.add(features, self._members[:, self.start : end])
        self.start = end
        if end < self._members.shape[1] and time.monotonic() - self._saved >= _SAVE_SECONDS:
            state = self._stream.state() | {_TARGETS: np.array(self._names)}
            bound.write(self._path, state, self._made_from, self._parts)
            self._saved = time.monotonic()

    def distances(self) -> dict[str, np.ndarray]:
        """Gives {name: MSD and MMD [2, G]}."""
        both = np.stack([self._stream.msd, self._stream.mmd])
        return {name: both[:, :, k] for k, name in enumerate(self._names)}

    def remove(self) -> None:
        """Removes the file, once the distances are elsewhere."""
        files.remove(self._path)
