"""Measures MSD and MMD, distances of augmentation schemes to corruptions as a network sees them.

    python -m tools.msd --workdir=runs/overlap_shapes --config.msd.schemes="('standard','augmix')"

The workdir is one of train.py or overlap.py; only the `msd` settings of the config are used. Draws
config.msd.transforms transforms of every scheme and config.msd.draws of every (corruption,
severity), applies each to the same config.msd.images training images, and writes to WORKDIR/msd:
msd.csv (distances, with their spread over random halves of images, transforms and draws) and
features.npz (centres of the corruptions and of clean images). Schemes are `standard` (images as
they are), augmentation schemes (corruptions.augment.names; `augmix=*` is AugMix with each of the
512 subsets of its operations), and corruptions or benchmarks of them at random severities. Stopped
anywhere, the same command continues, also in the middle of a scheme; more schemes and corruptions
can be asked for later. After ten seconds it says how many images a second the network takes and
how long the others will need: `configs/msd.py:paper` shows five billion images to it.

    python -m tools.msd --workdir=runs/baseline --config.msd.errors="runs/schemes/counts.csv"

also writes correlations.csv, correlations.png and correlations_mmd.png: Spearman's rho, across schemes, between each
corruption's distance and the error of models trained with the schemes (severities averaged), or
adapted to them (tools.adapt) when all tables are of such models. One set of images serves all
schemes, so that they are compared on the same; the original draws a new set for each scheme.
"""

from runtime import command  # isort: skip

import pathlib

import numpy as np
from ml_collections import ConfigDict

from analysis import tables
from analysis.distances import files
from analysis.distances.by_scheme import read_errors
from analysis.distances.correlated import write_correlated
from analysis.distances.msd_mmd import spread
from analysis.distances.text import distances_text
from evaluation import trained_models
from evaluation.conditions import list_conditions, warn_of_tables
from evaluation.distances import transforms
from evaluation.distances.centres import Measured, setting
from evaluation.distances.forecast import Forecast
from runtime import workdirs
from runtime.log import log
from runtime.progress import bar
from runtime.provenance import provenance, summary
from training import augmentation, cli

_DETERMINING = ("model", "model_seed", "seed", "images", "transforms", "draws", "halves")
_LEAST = {"images": 1, "transforms": 1, "draws": 1, "halves": 0}


def run(config: ConfigDict, workdir: pathlib.Path) -> list[files.Distance]:
    """Measures the distances of config.msd with a model of `workdir`; returns what msd.csv
    holds.
    """
    asked = config.msd
    _check(asked)
    conditions = list_conditions(asked.corruptions, asked.severity)
    targets = [(condition.corruption, condition.label) for condition in conditions]
    errors = read_errors(asked.errors, asked.model, targets) if asked.errors else None
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_ranges(trained, config)
        schemes = transforms.find(asked.schemes, augmentation.static_options(trained.train))
        measured = Measured.by(trained, asked, workdir, asked.out, setting(asked, _DETERMINING))
        warn_of_tables((*asked.corruptions, *asked.schemes), measured.extractor.images.shape[1:])
        centres = dict(zip(targets, map(measured.centre, bar("condition", conditions)), strict=True))
        all_images = {target: centre[0].astype(np.float32) for target, centre in centres.items()}
        files.write_centres(measured.folder / "features.npz", all_images, measured.made_from)
        del centres[tables.CLEAN, 0]  # their centre is stored, no distance to it
        rows = []
        forecast = Forecast(sum(measured.images_left(scheme, centres) for scheme in schemes))
        for scheme in bar("scheme", schemes):
            for target, (msd, mmd) in measured.scheme_distances(scheme, centres, forecast.saw).items():
                values = (msd[0], spread(msd), mmd[0], spread(mmd))
                rows.append(files.Distance(scheme.name, *target, *map(float, values)))
        forecast.end()
        _write(measured.folder, rows, errors, asked, trained)
        return rows


def _check(asked: ConfigDict) -> None:
    for key, least in _LEAST.items():
        if asked[key] < least:
            raise ValueError(f"expected config.msd.{key} of at least {least}, found {asked[key]}")
    if asked.halves == 1:
        raise ValueError("expected config.msd.halves 0 or at least 2, found 1: a single half has no spread")


def _write(
    folder: pathlib.Path,
    rows: list[files.Distance],
    errors: dict[tuple[str, str], float] | None,
    asked: ConfigDict,
    trained: ConfigDict,
) -> None:
    """Writes and prints the distances and, with errors, the correlations."""
    record = provenance()
    workdirs.write_json(folder / "provenance.json", {"msd": asked.to_dict(), "provenance": record})
    comment = (
        f"{trained.dataset.name}, {trained.model.name}, {asked.model} seed {asked.model_seed}, {asked.images} images, "
        f"{asked.transforms} transforms, {asked.draws} draws, {summary(record)}"
    )
    files.write_msd(folder / "msd.csv", rows, comment)
    print("\n" + distances_text(rows))
    if errors is None:
        return
    print("\n" + write_correlated(folder, rows, errors, comment))


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s.", workdir / config.msd.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    command.run(main, cli.parse)
