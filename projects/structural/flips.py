"""Measures how often predictions flip under small perturbations: ImageNet-P, CIFAR-10-P.

    python -m projects.structural.flips --workdir=runs/imagenet/alexnet --sequences=IMAGENET-P
    python -m projects.structural.flips --workdir=runs/imagenet/resnet50 --sequences=IMAGENET-P \
        --reference=runs/imagenet/alexnet

The workdir is one of train.py or overlap.py, or made of imported weights as eval.py makes it. --sequences holds an
array or a folder of frames for each perturbation (`projects.structural.sequences`). Prints the flip probability of every
model under each, their mean and the mean top-5 distance; with --reference, a workdir that was measured or its flips.csv,
mFR and mT5D. Writes WORKDIR/flips.csv, and WORKDIR/flips/PERTURBATION.json after each perturbation: the same command
continues. AlexNet's published values were not at hand: measure its network and give it as the reference. Frames are
compared as ImageNet-P does at its first difficulty. Means are over the perturbations of the folder, or of
--perturbations; flips.csv keeps the lines of the folder's others that were measured before.
"""

from runtime import command  # isort: skip

import functools
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from flax import nnx
from ml_collections import ConfigDict

from analysis.answers import Key
from analysis.frames import as_name
from evaluation import correctness, trained_models
from evaluation.correctness import Model, refuse_not_finite
from evaluation.evaluate import digests
from projects.structural.flip_rates import BEST, FILE, Flips, divisors, measure, rates, read_flips, text, write_flips
from projects.structural.sequences import Sequences, list_sequences, open_sequences
from runtime import artifacts, distributed, meshes
from runtime.artifacts import provenance, summary
from runtime.log import bar, log
from training import cli, study

_KEPT = "flips"  # folder of the results of each perturbation
_SHAPE = {"made_from": {str: str}, "sequences": [int], "rows": [(str, int, str, int, int, float, float, float, float)]}


def run(
    config: ConfigDict,
    workdir: pathlib.Path,
    sequences: pathlib.Path,
    reference: str = "",
    perturbations: Iterable[str] = (),
) -> list[Flips]:
    """Measures every model of `workdir` on the sequences in a folder; returns the rows of the chosen perturbations."""
    trained_models.refuse_eval_only(config)
    opened, relative_to = open_sequences(sequences, perturbations), read_flips(reference) if reference else []
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
        models = trained_models.read_models(workdir, dataset.num_classes, dataset.image_shape[0], mesh)
        made_from = {f"{name}/{seed}": state for (name, seed), state in digests(models).items()}
        rows = []
        for found in opened:
            rows += _kept(workdir, made_from, found) or _measured(workdir, made_from, found, models, config, mesh)
        others = [row for found in _others(workdir, sequences, opened) for row in _kept(workdir, made_from, found)]
        lines = sorted([*rows, *others], key=lambda row: row.perturbation)
        write_flips(workdir / FILE, lines, f"{sequences.name}, {summary(provenance())}")
    print(text(rows, rates(rows, relative_to) if reference else {}))
    return rows


def _others(workdir: pathlib.Path, folder: pathlib.Path, opened: list[Sequences]) -> list[Sequences]:
    """Opens the sequences of the folder that were measured before and are not chosen now."""
    before = {path.stem for path in (workdir / _KEPT).glob("*.json")} - {found.name for found in opened}
    names = before & list_sequences(folder).keys()
    return open_sequences(folder, names) if names else []


def _kept(workdir: pathlib.Path, made_from: dict[str, str], found: Sequences) -> list[Flips]:
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
    with fewer than 5.

    Raises:
      ValueError: a frame cannot be read, or a network's logits are not finite.
    """
    number, length = sequences.shape[:2]
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
    run(config, workdir, pathlib.Path(flags.FLAGS.sequences), flags.FLAGS.reference, flags.FLAGS.perturbations)
    log.info("Results are in %s.", workdir / FILE)


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_string("sequences", None, "Folder of the perturbations (required).")
    flags.DEFINE_list("perturbations", [], "Only these; by default all of the folder.")
    flags.DEFINE_string("reference", "", "Workdir or flips.csv of the model that mFR is relative to.")
    command.run(main, cli.parse)
