"""Checks MSD and MMD on mixtures of two corruptions, against each of the two.

    python -m tools.msd_toy --config=configs/msd.py --workdir=runs/baseline

A mixture of fraction p takes that part of its transforms from config.msd.toy.first and the others
from second, both at config.msd.toy.severity. As long as a few transforms are of the second, a
network can learn from them: MSD to it should stay low until p = 1, while MMD grows with p. E.
Mintun, A. Kirillov, S. Xie (2021), section 4, with motion blur and impulse noise. Takes images,
transforms and draws from config.msd, writes toy.csv and toy.png to WORKDIR/toy; the same command
continues.
"""

from runtime import command  # isort: skip

import pathlib

import numpy as np
from ml_collections import ConfigDict

from analysis import figures
from analysis.distances import files
from analysis.distances.figures import mixture_panel
from analysis.distances.msd_mmd import mixture_distances
from analysis.distances.text import mixtures_text
from evaluation import trained_models
from evaluation.conditions import expand, list_conditions
from evaluation.distances.centres import Measured, setting
from runtime.log import log
from runtime.provenance import provenance, summary
from training import cli

_DETERMINING = ("model", "model_seed", "seed", "images", "transforms", "draws")


def run(config: ConfigDict, workdir: pathlib.Path) -> list[files.MixtureDistance]:
    """Measures the mixtures of config.msd.toy; returns what toy.csv holds."""
    asked = ConfigDict(config.msd.to_dict() | {"halves": 0})
    toy = asked.toy
    names = expand((toy.first, toy.second))
    if len(names) != 2:
        raise ValueError(f"expected two corruptions in config.msd.toy, found {toy.first} and {toy.second}")
    conditions = list_conditions(names, str(toy.severity))[1:]
    if [condition.corruption for condition in conditions] != list(names):
        raise ValueError(f"expected one severity in config.msd.toy.severity, found {toy.severity!r}")
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_ranges(trained, config)
        measured = Measured.by(trained, asked, workdir, toy.out, setting(asked, _DETERMINING))
        centres = np.stack([measured.centre(condition)[0] for condition in conditions])
        first, second = (measured.features(condition) for condition in conditions)
        msd, mmd = mixture_distances(first, second, centres, tuple(toy.fractions))
        rows = [
            files.MixtureDistance(float(fraction), name, float(msd[i, k]), float(mmd[i, k]))
            for i, fraction in enumerate(toy.fractions)
            for k, name in enumerate(names)
        ]
        comment = (
            f"fraction of {names[0]} against {names[1]}, severity {toy.severity}; {trained.dataset.name}, "
            f"{trained.model.name}, {asked.images} images, {asked.transforms} transforms, {asked.draws} draws, "
            f"{summary(provenance())}"
        )
        files.write_toy(measured.folder / "toy.csv", rows, comment)
        title = f"Mixtures of {names[0]} (the fraction) and {names[1]}"
        figures.save(mixture_panel(rows, title=title), measured.folder / "toy")
        print("\n" + mixtures_text(rows))
    return rows


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s.", workdir / config.msd.toy.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    command.run(main, cli.parse)
