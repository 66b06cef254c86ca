"""Measures the exits of a network with several: each alone, and stopping at the first confident one.

    python -m tools.exits --config=configs/imagenet.py:msdnet --workdir=runs/imagenet/msdnet

The workdir is one of train.py, or of eval.py with imported weights; only the `eval` settings of the config matter.
Shows the test images under config.eval.corruptions and writes to the workdir

    exits.csv       right answers of each exit, and the multiply-adds up to it
    adaptive.csv    right answers and mean multiply-adds where each image stops at the first exit
                    that is sure enough, for several budgets (`analysis.exits`)

Every second clean test image, without its label, decides how sure an exit must be; adaptive.csv counts the other half, clean
and corrupted. Prints both as tables of means over the corruptions. Answers are kept in WORKDIR/exits: stopped anywhere,
the same command continues.
"""

from runtime import command  # isort: skip

import pathlib

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

import models
from analysis import exits, frames
from analysis.frames import CLEAN, standard_error, with_error
from corruptions.scoring.conditions import CLEAN_IMAGES, list_conditions
from evaluation import trained_models
from evaluation.correctness import kept_exits
from evaluation.evaluate import digests
from evaluation.shown import Shown
from models import costs
from runtime import meshes
from runtime.artifacts import provenance, summary
from runtime.log import bar
from training import cli, study

BUDGETS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # q of `exits.shares`
_OF = ("model", "seed", "corruption", "severity")


def run(config: ConfigDict, workdir: pathlib.Path) -> str:
    """Measures the exits of every network of `workdir`; returns the tables that it prints."""
    trained_models.refuse_eval_only(config)
    conditions = list_conditions(config.eval.corruptions, config.eval.severity)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.apply_eval(trained, config)
        dataset, _, split = study.load_data(trained, mesh, placed=("test",))
        size, classes = dataset.image_shape[0], dataset.num_classes
        networks = trained_models.read_models(workdir, dataset, mesh)
        shown = Shown.of(trained, split, mesh, dataset)
        shaping = set(models.options(trained.model.name)) - {"conv", "mean", "std", "init"}
        options = {key: value for key, value in trained.model.items() if key in shaping}
        up_to = np.array(costs.at_exits(trained.model.name, size, classes, **options))
        alone, adaptive, known = [], [], digests(networks)
        for key, network in networks.items():
            folder = workdir / "exits" / f"{key[0].replace('/', '.')}-{key[1]}"
            of_model = {
                at: kept_exits(folder / f"{at.stem}.npz", network, known[key], shown.under(at))
                for at in bar("condition", conditions)
            }
            alone += _alone(key, of_model, up_to)
            adaptive += _adaptive(key, of_model, up_to)
        comment, texts = f"{dataset.name}, {summary(provenance())}", []
        for name, column, rows in (("exits", "exit", alone), ("adaptive", "q", adaptive)):
            frame = frames.of_rows(rows, (*_OF, column, "multiply_adds", "correct", "total"))
            frames.write(workdir / f"{name}.csv", frame, comment)
            texts.append(_table(frame, column))
    return "\n\n".join(texts)


def _alone(key, of_model, up_to):
    for condition, (correct, _) in of_model.items():
        for number, (cost, right) in enumerate(zip(up_to.tolist(), correct.sum(0).tolist(), strict=True), 1):
            yield (*key, condition.corruption, condition.label, number, cost, right, len(correct))


def _adaptive(key, of_model, up_to):
    clean = of_model[CLEAN_IMAGES].confidence[::2]
    least = {q: exits.thresholds(clean, exits.shares(q, len(up_to))) for q in BUDGETS}
    for condition, (correct, confidence) in of_model.items():
        for q, sure in least.items():
            stopped = exits.stop(correct[1::2], confidence[1::2], sure, up_to)
            cost = round(stopped.multiply_adds)
            yield (*key, condition.corruption, condition.label, q, cost, stopped.correct, stopped.total)


def _table(frame, column):
    """Formats the means over clean images, and over corruptions: all show the same images, so errors are averaged."""
    error = standard_error(frame.correct, frame.total)
    frame = frame.assign(accuracy=frame.correct / frame.total, error=error, corrupted=frame.corruption != CLEAN)
    means = frame.groupby(["model", "seed", column, "corrupted"], sort=False)[["accuracy", "error", "multiply_adds"]]
    lines = {}
    for (model, seed, value, corrupted), row in means.mean().iterrows():
        cells = lines.setdefault((f"{model}, {seed}", value), [""] * 4)
        both = with_error(100 * row.accuracy, 100 * row.error), f"{row.multiply_adds / 1e6:.1f}"
        cells[2 * corrupted : 2 * corrupted + 2] = both
    titles = ["model, seed", column, "clean, %", "million multiply-adds", "corrupted, %", "the same"]
    return frames.markdown(pd.DataFrame([(*key, *cells) for key, cells in lines.items()], columns=titles))


if __name__ == "__main__":
    cli.define_flags("configs/imagenet.py:msdnet")
    command.run(cli.main(run), cli.parse)
