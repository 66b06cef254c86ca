"""Measures how often predictions flip under small perturbations: ImageNet-P, CIFAR-10-P.

    python -m tools.flips --workdir=runs/imagenet/alexnet --sequences=IMAGENET-P
    python -m tools.flips --workdir=runs/imagenet/resnet50 --sequences=IMAGENET-P --reference=runs/imagenet/alexnet

The workdir is one of train.py or overlap.py, or made of imported weights as eval.py does;
--sequences holds an array or a folder of frames for each perturbation (`data.sequences`). Prints
the flip probability of every model under each, their mean and the mean top-5 distance; with
--reference, a workdir that was measured or its flips.csv, mFR and mT5D. Writes WORKDIR/flips.csv,
and WORKDIR/flips/PERTURBATION.json after each perturbation: the same command continues. AlexNet's
published values were not at hand: its network is measured and given as the reference. Frames are
compared as ImageNet-P does at its first difficulty; means are over the perturbations that are
there, of which --perturbations chooses. flips.csv then keeps the lines of the folder's others that
were measured before.
"""

from runtime import command  # isort: skip

import pathlib
from collections.abc import Iterable

from absl import app, flags
from ml_collections import ConfigDict

from analysis.flips import FILE, Flips, divisors, measure, rates, read_flips, text, write_flips
from analysis.lines import as_name
from data.sequences import Sequences, list_sequences, open_sequences
from evaluation import flips, trained_models
from evaluation.evaluate import digests
from runtime import files, meshes, workdirs
from runtime.log import log
from runtime.provenance import provenance, summary
from training import cli, study

_KEPT = "flips"  # folder of what each perturbation gave
_SHAPE = {"made_from": {str: str}, "sequences": [int], "rows": [(str, int, str, int, int, float, float, float, float)]}


def run(
    config: ConfigDict,
    workdir: pathlib.Path,
    sequences: pathlib.Path,
    reference: str = "",
    perturbations: Iterable[str] = (),
) -> list[Flips]:
    """Measures every model of `workdir` on the sequences in a folder; returns the rows of the
    perturbations asked for.
    """
    trained_models.refuse_eval_only(config)
    opened, relative_to = open_sequences(sequences, perturbations), read_flips(reference) if reference else []
    if reference:  # one that does not fit is refused before anything is measured
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
    """The sequences of the folder that were measured before and are not asked for now."""
    before = {path.stem for path in (workdir / _KEPT).glob("*.json")} - {found.name for found in opened}
    names = before & list_sequences(folder).keys()
    return open_sequences(folder, names) if names else []


def _kept(workdir: pathlib.Path, made_from: dict[str, str], found: Sequences) -> list[Flips]:
    """What the same models gave on these sequences before; none where they are others."""
    path = workdir / _KEPT / f"{found.name}.json"
    content = files.read_json(path, remedy="remove it", shape=_SHAPE) if path.exists() else {}
    same = content.get("made_from") == made_from and content.get("sequences") == _identity(found)
    return [Flips(*row) for row in content["rows"]] if same else []


def _identity(found: Sequences) -> list[int]:
    return [*found.shape, *found.stamp]


def _measured(workdir, made_from, found, models, config, mesh) -> list[Flips]:
    best = flips.best_classes(models, found, config.eval.batch_size, mesh)
    rows = [measure(key, as_name(found.name), classes) for key, classes in best.items()]
    path = workdir / _KEPT / f"{found.name}.json"
    path.parent.mkdir(exist_ok=True)
    workdirs.write_json(path, {"made_from": made_from, "sequences": _identity(found), "rows": rows})
    return rows


def main(argv):
    config, workdir = cli.start(argv)
    if not flags.FLAGS.sequences:
        raise app.UsageError("expected --sequences=FOLDER, an array or a folder of frames for each perturbation")
    run(config, workdir, pathlib.Path(flags.FLAGS.sequences), flags.FLAGS.reference, flags.FLAGS.perturbations)
    log.info("Results are in %s.", workdir / FILE)


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_string("sequences", None, "Folder of the perturbations (required).")
    flags.DEFINE_list("perturbations", [], "Only these; default all that are there.")
    flags.DEFINE_string("reference", "", "Workdir or flips.csv of the model that mFR is relative to.")
    command.run(main, cli.parse)
