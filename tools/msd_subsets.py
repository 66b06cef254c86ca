"""Picks the transforms of an augmentation closest to a set of corruptions, or farthest from it.

    python -m tools.msd_subsets --config=configs/msd.py --workdir=runs/baseline
    python train.py --config=configs/scheme.py:stored=runs/baseline/subsets/closest_100.npz --workdir=runs/closest_100

Draws config.msd.subsets.pool transforms of config.msd.subsets.scheme, measures the distance of each
to the centres of config.msd.corruptions (as tools.msd does, with its settings), puts them in order
of closeness (analysis.distances.subsets) and writes to WORKDIR/subsets, for each size K:
closest_K.npz (the first K), farthest_K.npz (the last) and random_K.npz (uniform without
replacement), which train.py takes as schemes: every image draws one of the K transforms.
subsets.csv holds the MSD of each, averaged over the corruptions and severities. Stopped anywhere,
the same command continues. The experiment is that of E. Mintun, A. Kirillov, S. Xie (2021),
supplement A; `configs/msd.py:subsets` has its pool and sizes.
"""

from runtime import command  # isort: skip

import pathlib
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis.distances import files, subsets
from analysis.distances.text import subsets_text
from corruptions import augment
from corruptions.augment import stored
from evaluation import trained_models
from evaluation.conditions import list_conditions
from evaluation.distances import pool, transforms
from evaluation.distances.centres import SUBSETS, Measured, setting
from runtime.log import log
from runtime.progress import bar
from runtime.provenance import provenance, summary
from training import cli

_DETERMINING = ("model", "model_seed", "seed", "images", "draws", "corruptions", "severity")


def run(config: ConfigDict, workdir: pathlib.Path) -> list[files.SubsetDistance]:
    """Writes the subsets of config.msd.subsets; returns what subsets.csv holds."""
    asked = ConfigDict(config.msd.to_dict() | {"halves": 0})
    number, sizes = asked.subsets.pool, tuple(asked.subsets.sizes)
    if augment.is_stored(asked.subsets.scheme):
        raise ValueError(f"expected a scheme that transforms are drawn from, found {asked.subsets.scheme!r}")
    scheme = transforms.of_scheme(asked.subsets.scheme)
    if not sizes or not all(1 <= size <= number for size in sizes):
        raise ValueError(f"expected config.msd.subsets.sizes in 1..{number}, the pool, found {sizes}")
    conditions = list_conditions(asked.corruptions, asked.severity)[1:]
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_ranges(trained, config)
        determining = setting(asked, _DETERMINING) | {"pool": number, "scheme": scheme.name}
        measured = Measured.by(trained, asked, workdir, asked.subsets.out, determining)
        centres = np.stack([measured.centre(condition)[0] for condition in bar("condition", conditions)])
        distances = pool.distances(measured, scheme, number, centres)
        record = provenance()
        settings = determining | {"options": measured.options}
        origin = {"settings": settings, "dataset": trained.dataset.name, "provenance": record}
        rows = _write_subsets(measured, scheme, distances, sizes, origin)
        comment = f"{trained.dataset.name}, {trained.model.name}, {summary(record)}"
        files.write_subsets(measured.folder / "subsets.csv", rows, comment)
        print("\n" + subsets_text(rows, len(centres)))
    return rows


def _write_subsets(
    measured: Measured,
    scheme: transforms.Transform,
    distances: np.ndarray,
    sizes: tuple[int, ...],
    origin: dict[str, Any],
) -> list[files.SubsetDistance]:
    """Writes KIND_SIZE.npz for every kind of subset and size, from distances [pool, m]."""
    order, shape = subsets.closest_first(distances), tuple(measured.extractor.images.shape[1:])
    rows = []
    for kind in subsets.KINDS:
        for size in sizes:
            numbers = subsets.choose(order, size, kind, measured.generator(SUBSETS, f"{kind} {size}"))
            about = origin | {"kind": kind, "size": size, "numbers": numbers.tolist()}
            params = pool.params(measured, scheme, numbers)
            content = stored.Stored(scheme.name, shape, f"{kind}_{size}", params, about)
            stored.write(measured.folder / f"{kind}_{size}.npz", content)
            rows.append(files.SubsetDistance(kind, size, float(distances[numbers].min(axis=0).mean())))
    return rows


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s.", workdir / config.msd.subsets.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    command.run(main, cli.parse)
