"""Measures how often predictions flip under small perturbations: ImageNet-P, CIFAR-10-P.

    python -m projects.structural.flips --workdir=runs/imagenet/alexnet --sequences=IMAGENET-P
    python -m projects.structural.flips --workdir=runs/imagenet/resnet50 --sequences=IMAGENET-P \
        --reference=runs/imagenet/alexnet

The workdir is one of train.py or overlap.py, or made of imported weights as eval.py makes it. --sequences holds for each
perturbation, whose frames grow or are redrawn,

    gaussian_noise.npy             uint8 [sequences, frames, H, W, 3], as CIFAR-10-P is published
    gaussian_noise/CLASS/NAME/*    or a folder of images for each sequence, frames in the order of the
                                   numbers in their names: ImageNet-P, once its videos are taken apart

Videos are not decoded here: ffmpeg -i NAME.mp4 NAME/%02d.png takes one apart. Networks see frames as they are, neither
resized nor cropped. Labels are not needed. Source: D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness
to Common Corruptions and Perturbations" (2019), section 4, and its released data. Prints the flip probability of every
model under each, their mean and the mean top-5 distance; with --reference, a workdir that was measured or its flips.csv,
mFR and mT5D. Writes WORKDIR/flips.csv, and WORKDIR/flips/PERTURBATION.json after each perturbation: the same command
continues. AlexNet's published values were not at hand: measure its network and give it as the reference. Frames are
compared as ImageNet-P does at its first difficulty. Means are over the perturbations of the folder, or of
--perturbations; flips.csv keeps the lines of the folder's others that were measured before.
"""

from runtime import command  # isort: skip

import concurrent.futures
import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from flax import nnx
from ml_collections import ConfigDict

from analysis.answers import Key
from analysis.frames import as_name
from corruptions.reading import pictures
from corruptions.reading.folders import by_number, image_paths
from data import cache, tree
from data.corrupted.readers import read_image
from evaluation import correctness, trained_models
from evaluation.correctness import Model, refuse_not_finite
from evaluation.evaluate import digests
from projects.structural.flip_rates import BEST, FILE, Flips, divisors, measure, rates, read_flips, text, write_flips
from runtime import artifacts, distributed, files, meshes
from runtime.artifacts import provenance, summary
from runtime.log import bar, log
from training import cli, study


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """All sequences of one perturbation."""

    name: str  # such as gaussian_noise
    shape: tuple[int, ...]  # (sequences, frames, H, W, 3)
    source: np.ndarray | list[list[Path]]  # the array, or the images of each sequence
    stamp: tuple[int, ...]  # a digest of the files' `tree.state`
    orientations: pictures.Orientations = dataclasses.field(default_factory=pictures.Orientations)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Reads sequences start, ..., stop - 1: uint8 [n, frames, H, W, 3].

        Raises ValueError, which names the file, for one that is no image, or of another size than the first.
        """
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[start:stop])
        paths = [path for frames in self.source[start:stop] for path in frames]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            images = list(pool.map(lambda path: _image(path, self.shape[2:], self.orientations), paths))
        return np.stack(images).reshape(-1, *self.shape[1:])


def list_sequences(folder: str | os.PathLike) -> dict[str, Path]:
    """Lists the perturbations in a folder without opening them: {name: array or folder}.

    Raises FileNotFoundError without the folder; ValueError where a perturbation exists both as an array and as a
    folder.
    """
    folder, paths = Path(folder).expanduser(), {}
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of sequences, found none at {folder}")
    visible = [path for path in folder.iterdir() if not path.name.startswith(".") and path.name != "labels.npy"]
    for path in visible:
        if path.is_dir() or path.suffix == ".npy":
            name = path.name if path.is_dir() else path.stem
            if name in paths:
                raise ValueError(f"{folder}: expected {name}.npy or {name}/, found both; remove one of them")
            paths[name] = path
    return paths


def open_sequences(folder: str | os.PathLike, names: Iterable[str] = (), turn: bool = False) -> list[Sequences]:
    """Opens the named perturbations (without names: all) of a folder, sorted by name; pixels are read later.

    `turn` turns frames in image files by the orientation in their EXIF data.

    Raises:
      FileNotFoundError: no such folder, no sequences in it, or not those.
      ValueError: see `list_sequences`; an array of another form, a damaged image, sequences of unequal length, or
        fewer than two.
    """
    paths = list_sequences(folder)
    names = sorted(set(names) or paths)
    if missing := [name for name in names if name not in paths]:
        raise FileNotFoundError(f"{folder}: expected {', '.join(missing)}, found {', '.join(sorted(paths)) or 'none'}")
    if not names:
        raise FileNotFoundError(
            f"{folder}: expected PERTURBATION.npy or PERTURBATION/CLASS/SEQUENCE/FRAME.png, found neither"
        )
    return [_of_folder(paths[name], turn) if paths[name].is_dir() else _of_array(paths[name]) for name in names]


def _of_array(path):
    array = files.read_array(path, "copy it again", mapped=True)
    if array.ndim != 5 or array.dtype != np.uint8 or array.shape[-1] != 3 or min(array.shape[:2]) < 2:
        raise ValueError(
            f"{path}: expected uint8 [sequences, frames, H, W, 3], two of the first two at least, found {array.dtype} "
            f"{list(array.shape)}"
        )
    return Sequences(path.stem, array.shape, array, _stamp([path], path.parent))


def _of_folder(path, turn):
    frames = {}
    for file in image_paths(path):
        frames.setdefault(file.parent, []).append(file)
    for images in frames.values():
        images.sort(key=lambda file: by_number(file.name))
    lengths = {len(images) for images in frames.values()}
    if len(frames) < 2 or len(lengths) != 1 or min(lengths) < 2:
        raise ValueError(
            f"{path}: expected two or more folders of equally many images, two at least, found "
            f"{len(frames)} of {', '.join(map(str, sorted(lengths))) or 'no'} images"
        )
    ((first, *_), *_) = listed = list(frames.values())
    stamp = (*_stamp([file for images in listed for file in images], path), *([1] if turn else []))
    shape = read_image(first, orientations=pictures.Orientations(turn)).shape
    return Sequences(path.name, (len(listed), *lengths, *shape), listed, stamp, pictures.Orientations(turn))


def _stamp(paths, root):
    """One number that changes with the `tree.state` of the files."""
    return (int(cache.fingerprint(tree.state(paths, root)), 16),)


def _image(path, shape, orientations):
    pixels = read_image(path, orientations=orientations)
    if pixels.shape != shape:
        raise ValueError(f"{path}: expected {shape[0]}x{shape[1]} pixels, found {pixels.shape[0]}x{pixels.shape[1]}")
    return pixels


_KEPT = "flips"  # folder of the results of each perturbation
_SHAPE = {"made_from": {str: str}, "sequences": [int], "rows": [(str, int, str, int, int, float, float, float, float)]}


def run(
    config: ConfigDict,
    workdir: Path,
    sequences: Path,
    reference: str = "",
    perturbations: Iterable[str] = (),
    turn: bool = False,
) -> list[Flips]:
    """Measures every model of `workdir` on the sequences in a folder; returns the rows of the chosen perturbations.

    `turn` as of `open_sequences`.
    """
    trained_models.refuse_eval_only(config)
    opened, relative_to = open_sequences(sequences, perturbations, turn), read_flips(reference) if reference else []
    if reference:  # a reference that does not fit is refused before any measurement
        divisors(relative_to, [(as_name(found.name), *found.shape[:2]) for found in opened])
    mesh = meshes.data_mesh(config.eval.batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        dataset = study.load_dataset(trained)
        for found in opened:
            if found.shape[2:] != dataset.image_shape:
                raise ValueError(
                    f"expected frames {list(dataset.image_shape)} as {dataset.name} has images, found "
                    f"{list(found.shape[2:])} in {found.name} of {sequences}"
                )
        models = trained_models.read_models(workdir, dataset, mesh)
        made_from = {f"{name}/{seed}": state for (name, seed), state in digests(models).items()}
        rows = []
        for found in opened:
            rows += _kept(workdir, made_from, found) or _measured(workdir, made_from, found, models, config, mesh)
        others = [
            row for found in _others(workdir, sequences, opened, turn) for row in _kept(workdir, made_from, found)
        ]
        lines = sorted([*rows, *others], key=lambda row: row.perturbation)
        write_flips(workdir / FILE, lines, f"{sequences.name}, {summary(provenance())}")
    print(text(rows, rates(rows, relative_to) if reference else {}))
    return rows


def _others(workdir: Path, folder: Path, opened: list[Sequences], turn: bool) -> list[Sequences]:
    """Opens the sequences of the folder that were measured before and are not chosen now."""
    before = {path.stem for path in (workdir / _KEPT).glob("*.json")} - {found.name for found in opened}
    names = before & list_sequences(folder).keys()
    return open_sequences(folder, names, turn) if names else []


def _kept(workdir: Path, made_from: dict[str, str], found: Sequences) -> list[Flips]:
    """Reads earlier results of the same models on the same sequences; an empty list for others."""
    path = workdir / _KEPT / f"{found.name}.json"
    content = artifacts.read_record(path, "remove it", shape=_SHAPE) if path.exists() else {}
    same = content.get("made_from") == made_from and content.get("sequences") == _identity(found)
    return [Flips(*row) for row in content["rows"]] if same else []


def _identity(found: Sequences) -> list[int]:
    return [*found.shape, *found.stamp]


def _measured(workdir, made_from, found, models, config, mesh) -> list[Flips]:
    best = best_classes(models, found, config.eval.batch_size, mesh)
    rows = [measure(key, as_name(found.name), classes) for key, classes in best.items()]
    path = workdir / _KEPT / f"{found.name}.json"
    path.parent.mkdir(exist_ok=True)
    artifacts.write_record(path, {"made_from": made_from, "sequences": _identity(found), "rows": rows})
    return rows


def best_classes(
    models: Mapping[Key, Model], sequences: Sequences, batch_size: int, mesh: jax.sharding.Mesh
) -> dict[Key, np.ndarray]:
    """Shows all frames of one perturbation to every model {(name, seed): (graphdef, state)}, `batch_size` frames at once.

    Returns {(name, seed): int32 [sequences, frames, 5]}, classes of the largest logits, best first; all classes of networks
    with fewer than 5. Raises ValueError where a frame cannot be read, or a network's logits are not finite.
    """
    number, length = sequences.shape[:2]
    batch_size = min(batch_size, number * length)
    step, parts = max(1, batch_size // length), {key: [] for key in models}
    for start in bar("batch", range(0, number, step)):
        pixels = sequences.read(start, min(start + step, number))
        frames = pixels.reshape(-1, *pixels.shape[2:])
        batches = correctness.place_batches(jnp.asarray(frames), batch_size, 0, mesh)
        for key, (graphdef, state) in models.items():
            found = _best(graphdef, state.params, state.statistics, batches)
            logits, best = (distributed.fetch(x).reshape(-1, x.shape[-1])[: len(frames)] for x in found)
            refuse_not_finite(logits, sequences.name)
            parts[key].append(best.reshape(-1, length, best.shape[-1]))
    sequences.orientations.warn(sequences.name, "--turn")
    return {key: np.concatenate(found) for key, found in parts.items()}


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _best(graphdef: nnx.GraphDef, params: Any, statistics: Any, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the largest logits, float32 [M, B, 5], and their classes, int32, for uint8 images [M, B, H, W, 3].

    Among equal logits the lower class comes first.
    """
    model = nnx.merge(graphdef, params, statistics, copy=True)

    def top_of(batch):
        logits = model(batch, train=False)[0]
        return jax.lax.top_k(logits, min(BEST, logits.shape[-1]))

    return jax.lax.map(top_of, images)


def main(argv):
    config, workdir = cli.start(argv)
    if not flags.FLAGS.sequences:
        raise app.UsageError("expected --sequences=FOLDER, an array or a folder of frames for each perturbation")
    asked = flags.FLAGS
    run(config, workdir, Path(asked.sequences), asked.reference, asked.perturbations, asked.turn)
    log.info("Results are in %s.", workdir / FILE)


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_string("sequences", None, "Folder of the perturbations (required).")
    flags.DEFINE_list("perturbations", [], "Perturbations to measure; by default all in the folder.")
    flags.DEFINE_bool("turn", False, "Turn frames by the orientation in their EXIF data.")
    flags.DEFINE_string("reference", "", "Reference of mFR: a workdir of its model, or its flips.csv.")
    command.run(main, cli.parse)
