"""Measures MSD and MMD, distances of augmentation schemes to corruptions as a network sees them.

    python -m tools.msd --workdir=runs/overlap_shapes --config.msd.schemes="('standard','augmix')"
    python -m tools.msd --workdir=runs/baseline --config.msd.errors=runs/schemes

The workdir is one of train.py or overlap.py; only the `msd` settings of the config are used. Draws config.msd.transforms
transforms of each scheme and config.msd.draws of each (corruption, severity), applies all to the same config.msd.images
training images, and writes to WORKDIR/msd

    msd.csv            distances, and their spread over random halves of images, transforms and draws
    features.npz       centres of the corruptions and of clean images
    correlations.csv   with config.msd.errors, evaluated workdirs (a pattern in quotes): Spearman's rho, across schemes, of
                       each corruption's distance and the error of models trained with the schemes, or adapted to them
                       (tools.adapt) when all are adapted; correlations.png and correlations_mmd.png

Schemes are `standard` (images as they are), corruptions.augment.names(), `augmix=*` (AugMix with each of the 512 subsets of
its operations), corruptions and benchmarks at random severities. Stopped anywhere, the same command continues, and takes
more schemes and corruptions. After ten seconds it says how long it will need: `configs/msd.py:paper` shows five billion
images to the network. One set of images serves all schemes; the original draws a new set for each.

Other experiments of E. Mintun, A. Kirillov, S. Xie (2021), with --config=configs/msd.py:

    --experiment=toy         section 4: a mixture takes a fraction p of its transforms from config.msd.toy.first, the others
                             from second. MSD to the second should stay low until p = 1, while MMD grows with p.
                             WORKDIR/toy/toy.csv, toy.png
    --experiment=subsets     supplement A: orders config.msd.subsets.pool transforms of a scheme by their distance to the
                             centres of config.msd.corruptions, and writes for each size K the first K, the last K and K
                             uniform ones: WORKDIR/subsets/closest_K.npz, farthest_K.npz, random_K.npz, and their MSD,
                             subsets.csv. train.py --config=configs/scheme.py:stored=FILE.npz trains with one
    --experiment=resampling  Figure 6: how far the distance of a transform to a corruption varies with images and draws, over
                             config.msd.resampling.resamplings of each of config.msd.resampling.pairs pairs, in percent of
                             the mean distance. WORKDIR/resampling/resampling.csv, resampling.png
"""

from runtime import command  # isort: skip

import contextlib
import functools
import glob
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags
from ml_collections import ConfigDict

from analysis import answers, figures, frames
from analysis.distances import experiments, results
from analysis.distances.experiments import MixtureDistance, Spread, SubsetDistance
from analysis.distances.figures import mixture_panel, spread_panel
from analysis.distances.results import Distance
from corruptions import augment
from corruptions.augment import stored
from corruptions.scoring.conditions import expand, list_conditions
from evaluation import trained_models
from evaluation.distances import features, sampling
from evaluation.distances.centres import PAIRS, SUBSETS, Measured, setting
from evaluation.evaluate import warn_of_tables
from runtime import files, workdirs
from runtime.artifacts import provenance, summary
from runtime.log import bar, log
from training import cli
from training.sections import TrainSettings

_NETWORK = ("model", "model_seed", "seed")


def distances(config: ConfigDict, workdir: pathlib.Path) -> list[Distance]:
    """Measures the distances of config.msd with a model of `workdir`; returns the rows of msd.csv."""
    asked = config.msd
    conditions = list_conditions(asked.corruptions, asked.severity)
    targets = [(condition.corruption, condition.label) for condition in conditions]
    errors = read_errors(asked.errors, asked.model, targets) if asked.errors else None
    determining = setting(asked, (*_NETWORK, "images", "transforms", "draws", "halves"))
    # Files of distances name a corruption and `random`; benchmarks select different levels of the same corruption.
    if drawn := {condition.corruption: condition.levels for condition in conditions if condition.levels}:
        determining["levels"] = drawn
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_options(trained, config)
        schemes = features.find(asked.schemes, TrainSettings.of(trained.train).corruption_options)
        measured = Measured.by(trained, asked, workdir, asked.out, determining)
        warn_of_tables((*asked.corruptions, *asked.schemes), measured.extractor.images.shape[1:])
        centres = dict(zip(targets, map(measured.centre, bar("condition", conditions)), strict=True))
        all_images = {target: centre[0].astype(np.float32) for target, centre in centres.items()}
        results.write_centres(measured.folder / "features.npz", all_images, measured.made_from)
        del centres[frames.CLEAN, 0]  # the centre of clean images is stored, but no scheme is measured against it
        rows, left = [], sum(measured.images_left(scheme, centres) for scheme in schemes)
        with bar("image", total=left, desc="all schemes", unit_scale=True) as progress:
            for scheme in schemes:
                found = measured.scheme_distances(scheme, centres, progress.update)
                rows += [Distance.of(scheme.name, target, both) for target, both in found.items()]
        record = provenance()
        workdirs.write_json(measured.folder / "provenance.json", {"msd": asked.to_dict(), "provenance": record})
        origin = (
            f"{trained.dataset.name}, {trained.model.name}, {asked.model} seed {asked.model_seed}, {asked.images} "
            f"images, {asked.transforms} transforms, {asked.draws} draws, {summary(record)}"
        )
        results.remove_correlations(measured.folder)
        frames.write(measured.folder / "msd.csv", frames.of_rows(rows, Distance._fields), origin)
        print("\n" + results.distances_text(rows))
        if errors is not None:
            print("\n" + results.write_correlations(measured.folder, rows, errors, origin))
        return rows


def read_errors(
    pattern: str, model: str, targets: Sequence[tuple[str, int | float | str]]
) -> dict[tuple[str, str], float]:
    """Reads the errors of schemes from evaluated workdirs: {(scheme, corruption): error in percent}.

    Args:
      pattern: pattern of the workdirs' paths; the models in them are trained with the schemes, or all of them adapted.
      model: model that tools.adapt adapted to the schemes; `MODEL+bn=SCHEME` is called SCHEME then.
      targets: (corruption, severity) pairs that count.
    """
    folders = sorted(glob.glob(files.local(pattern, "config.msd.errors")))
    if not folders:
        raise FileNotFoundError(f"expected evaluated workdirs at config.msd.errors={pattern!r}, found none")
    counts = [row for folder in folders for row in answers.read(folder).counts]
    adapted = f"{model}+bn="
    if all(model.startswith(adapted) for (model, _), _ in counts):
        counts = [((model.removeprefix(adapted), seed), count) for (model, seed), count in counts]
    return results.mean_errors((key, count) for key, count in counts if count[:2] in targets)


def toy(config: ConfigDict, workdir: pathlib.Path) -> list[MixtureDistance]:
    """Measures the mixtures of config.msd.toy; returns the rows of toy.csv."""
    asked, mixed = _without_halves(config), config.msd.toy
    names = expand((mixed.first, mixed.second))
    if len(names) != 2:
        raise ValueError(f"expected two corruptions in config.msd.toy, found {mixed.first} and {mixed.second}")
    conditions = list_conditions(names, str(mixed.severity))[1:]
    if [condition.corruption for condition in conditions] != list(names):
        raise ValueError(f"expected one severity in config.msd.toy.severity, found {mixed.severity!r}")
    determining = setting(asked, (*_NETWORK, "images", "transforms", "draws"))
    with _measured(config, workdir, asked, mixed.out, determining) as (trained, measured):
        centres = np.stack([measured.centre(condition)[0] for condition in conditions])
        first, second = (measured.features(condition) for condition in conditions)
        msd, mmd = experiments.mixture_distances(first, second, centres, tuple(mixed.fractions))
        rows = [
            MixtureDistance(float(fraction), name, *both)
            for fraction, of_fraction in zip(mixed.fractions, np.stack([msd, mmd], axis=-1).tolist(), strict=True)
            for name, both in zip(names, of_fraction, strict=True)
        ]
        origin = (
            f"fraction of {names[0]} against {names[1]}, severity {mixed.severity}; {trained.dataset.name}, "
            f"{trained.model.name}, {asked.images} images, {asked.transforms} transforms, {asked.draws} draws, "
            f"{summary(provenance())}"
        )
        frame = frames.of_rows(rows, MixtureDistance._fields)
        frames.write(measured.folder / "toy.csv", frame, origin)
        panel = mixture_panel(rows, title=f"Mixtures of {names[0]} (the fraction) and {names[1]}")
        figures.save(panel, measured.folder / "toy")
        decimals = {"fraction": "{:.2f}".format, "msd": "{:.3f}".format, "mmd": "{:.3f}".format}
        print("\n" + frame.to_string(index=False, formatters=decimals))
    return rows


def subsets(config: ConfigDict, workdir: pathlib.Path) -> list[SubsetDistance]:
    """Writes the subsets of config.msd.subsets; returns the rows of subsets.csv."""
    asked = _without_halves(config)
    number, sizes = asked.subsets.pool, tuple(asked.subsets.sizes)
    if augment.is_stored(asked.subsets.scheme):
        raise ValueError(f"expected a scheme that transforms are drawn from, found {asked.subsets.scheme!r}")
    scheme = features.of_scheme(asked.subsets.scheme)
    conditions = list_conditions(asked.corruptions, asked.severity)[1:]
    determining = setting(asked, (*_NETWORK, "images", "draws", "corruptions", "severity"))
    determining |= {"pool": number, "scheme": scheme.name}
    with _measured(config, workdir, asked, asked.subsets.out, determining) as (trained, measured):
        centres = np.stack([measured.centre(condition)[0] for condition in bar("condition", conditions)])
        of_transforms = sampling.pool_distances(measured, scheme, number, centres)
        record, source = provenance(), trained.dataset.name
        settings = determining | {"options": measured.options}
        origin = {"settings": settings, "dataset": source, "provenance": record}
        rows = list(_write_subsets(measured, scheme, of_transforms, sizes, origin))
        frame = frames.of_rows(rows, SubsetDistance._fields)
        frames.write(measured.folder / "subsets.csv", frame, f"{source}, {trained.model.name}, {summary(record)}")
        print(f"\nmean MSD over {len(centres)} corruptions and severities")
        print(frame.to_string(index=False, float_format="{:.3f}".format))
    return rows


def _write_subsets(measured, scheme, of_transforms, sizes, origin) -> Iterator[SubsetDistance]:
    """Writes KIND_SIZE.npz for every kind of subset and size, from distances [pool, m]."""
    order, shape = experiments.closest_first(of_transforms), tuple(measured.extractor.images.shape[1:])
    for kind in experiments.KINDS:
        for size in sizes:
            numbers = experiments.choose(order, size, kind, measured.generator(SUBSETS, f"{kind} {size}"))
            about = {**origin, "kind": kind, "size": size, "numbers": numbers.tolist()}
            params = {name: np.asarray(value) for name, value in measured.params(scheme, numbers).items()}
            content = stored.Stored(scheme.name, shape, f"{kind}_{size}", params, about)
            stored.write(measured.folder / f"{kind}_{size}.npz", content)
            yield SubsetDistance(kind, size, float(of_transforms[numbers].min(axis=0).mean()))


def resampling(config: ConfigDict, workdir: pathlib.Path) -> list[Spread]:
    """Measures the pairs of config.msd.resampling; returns the rows of resampling.csv."""
    grid = config.msd.resampling
    images, draws = tuple(grid.images), tuple(grid.draws)
    asked = _without_halves(config, images=max(images))
    scheme = features.of_scheme(grid.scheme)
    conditions = list_conditions(asked.corruptions, asked.severity)[1:]
    determining = setting(asked, (*_NETWORK, "corruptions", "severity"))
    determining |= setting(grid, ("scheme", "resamplings", "images", "draws"))
    with _measured(config, workdir, asked, grid.out, determining) as (trained, measured):
        of_pairs = []
        for number in bar("pair", range(grid.pairs)):
            condition = conditions[measured.generator(PAIRS, f"pair {number}").integers(len(conditions))]
            corruption = measured.transform(condition)
            measure = functools.partial(
                sampling.pair_distances, measured, scheme, number, corruption, grid.resamplings, images, draws
            )
            parts = {**measured.part(scheme), **measured.part(corruption, condition.value)}
            of_pairs.append(measured.once(f"pairs/{number}.npz", "distances", measure, parts))
        rows = experiments.spreads(np.stack(of_pairs), images, draws)
        origin = (
            f"{scheme.name} to {', '.join(asked.corruptions)}; {trained.dataset.name}, {trained.model.name}, "
            f"{grid.pairs} pairs, {grid.resamplings} resamplings, {summary(provenance())}"
        )
        frames.write(measured.folder / "resampling.csv", frames.of_rows(rows, Spread._fields), origin)
        title = f"Spread of the distance of a transform of {scheme.name} to a corruption"
        figures.save(spread_panel(rows, title=title), measured.folder / "resampling")
        print("\n" + experiments.spreads_text(rows))
    return rows


@contextlib.contextmanager
def _measured(
    config: ConfigDict, workdir: pathlib.Path, asked: ConfigDict, out: str, determining: Mapping[str, Any]
) -> Iterator[tuple[ConfigDict, Measured]]:
    """Opens a workdir and its folder `out`: (config of the network, its `Measured`)."""
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.take_options(trained, config)
        yield trained, Measured.by(trained, asked, workdir, out, determining)


def _without_halves(config: ConfigDict, **changed: int) -> ConfigDict:
    return ConfigDict(config.msd.to_dict() | {"halves": 0} | changed)


EXPERIMENTS = {"distances": distances, "toy": toy, "subsets": subsets, "resampling": resampling}


def main(argv):
    config, workdir = cli.start(argv)
    experiment = flags.FLAGS.experiment
    EXPERIMENTS[experiment](config, workdir)
    out = config.msd if experiment == "distances" else config.msd[experiment]
    log.info("Results are in %s.", workdir / out.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    flags.DEFINE_enum("experiment", "distances", list(EXPERIMENTS), "Which experiment of the paper.")
    command.run(main, cli.parse)
