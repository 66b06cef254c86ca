"""Measures how far the distance of a transform to a corruption varies with images and draws.

    python -m tools.msd_resampling --config=configs/msd.py --workdir=runs/baseline

Takes config.msd.resampling.pairs pairs of one transform of config.msd.resampling.scheme and one
(corruption, severity) of config.msd, and measures the distance of the transform to the corruption's
centre config.msd.resampling.resamplings times, each with other training images and other draws, for
every number of images and of draws. Writes to WORKDIR/resampling: resampling.csv (mean distance,
and the standard deviation over resamplings in percent of it, means over the pairs with standard
errors) and resampling.png. Stopped anywhere, the same command continues with the next pair; more
pairs can be asked for later. The experiment is Figure 6 in the supplement of E. Mintun, A. Kirillov,
S. Xie (2021); `configs/msd.py:paper` has its 100 pairs and 100 resamplings.
"""

from runtime import command  # isort: skip

import functools
import pathlib

import numpy as np
from ml_collections import ConfigDict

from analysis import figures
from analysis.distances import resampling
from evaluation import trained_models
from evaluation.conditions import list_conditions
from evaluation.distances import resampled, transforms
from evaluation.distances.centres import PAIRS, Measured, setting
from runtime.log import log
from runtime.progress import bar
from runtime.provenance import provenance, summary
from training import cli

_DETERMINING = ("model", "model_seed", "seed", "corruptions", "severity")
_GRID = ("scheme", "resamplings", "images", "draws")


def run(config: ConfigDict, workdir: pathlib.Path) -> list[resampling.Spread]:
    """Measures the pairs of config.msd.resampling; returns what resampling.csv holds."""
    grid = config.msd.resampling
    images, draws = tuple(grid.images), tuple(grid.draws)
    asked = ConfigDict(config.msd.to_dict() | {"images": max(images), "halves": 0})
    scheme = transforms.of_scheme(grid.scheme)
    conditions = list_conditions(asked.corruptions, asked.severity)[1:]
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_ranges(trained, config)
        determining = setting(asked, _DETERMINING) | setting(grid, _GRID)
        measured = Measured.by(trained, asked, workdir, grid.out, determining)
        distances = []
        for number in bar("pair", range(grid.pairs)):
            condition = conditions[measured.generator(PAIRS, f"pair {number}").integers(len(conditions))]
            corruption = measured.transform(condition)
            measure = functools.partial(
                resampled.pair_distances, measured, scheme, number, corruption, grid.resamplings, images, draws
            )
            distances.append(measured.once(f"pairs/{number}.npz", "distances", measure))
        rows = resampling.spreads(np.stack(distances), images, draws)
        comment = (
            f"{scheme.name} to {', '.join(asked.corruptions)}; {trained.dataset.name}, {trained.model.name}, "
            f"{grid.pairs} pairs, {grid.resamplings} resamplings, {summary(provenance())}"
        )
        resampling.write_spreads(measured.folder / "resampling.csv", rows, comment)
        title = f"Spread of the distance of a transform of {scheme.name} to a corruption"
        figures.save(resampling.spread_panel(rows, title=title), measured.folder / "resampling")
        print("\n" + resampling.spreads_text(rows))
    return rows


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s.", workdir / config.msd.resampling.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    command.run(main, cli.parse)
