"""Distances between augmentation schemes and corruptions in the feature space of a trained model: MSD and MMD.

    python -m tools.msd --workdir=runs/overlap_shapes --config.msd.schemes="('standard','augmix')"

The workdir is one of train.py or overlap.py; only the `msd` settings of the config are used. Draws
config.msd.transforms transforms of every scheme and config.msd.draws of every (corruption, severity), applies each to
the same config.msd.images training images, and writes to WORKDIR/msd: msd.csv (distances, with their spread over random
halves of images, transforms and draws) and features.npz (centres of the corruptions and of clean images). Schemes are
`standard` (images as they are), augmentation schemes (corruptions.augment.names; `augmix=*` is AugMix with each of the
512 subsets of its operations), and corruptions or benchmarks of them at random severities. Stopped anywhere, the same
command continues; more schemes and corruptions can be asked for later.

    python -m tools.msd --workdir=runs/baseline --config.msd.errors="runs/schemes/*/counts.csv"

also writes correlations.csv and correlations.png: Spearman's rho, across schemes, between each corruption's distance
and the error of models trained with the schemes (severities averaged), or adapted to them (tools.adapt) when all tables
are of such models. One set of images serves all schemes, so that they are compared on the same; the original draws a
new set for each scheme.
"""

import glob
import pathlib

import numpy as np
from absl import app
from tqdm import tqdm

from analysis import figures, tables
from analysis.distances import msd_mmd
from analysis.distances.figures import scatter_panels
from analysis.distances.files import (
    Distance,
    correlations,
    mean_distances,
    mean_errors,
    write_centres,
    write_correlations,
    write_msd,
)
from evaluation import trained_models, transforms
from evaluation.centres import REMEDY, TRANSFORMS, draw_key, generator, measure_centre, open_extractor, open_folder
from evaluation.conditions import list_conditions, warn_of_tables
from runtime import command, compiles, files, workdirs
from runtime.log import log
from runtime.provenance import provenance, summary
from training import augmentation, cli

_SETTINGS = ("model", "model_seed", "seed", "images", "transforms", "draws", "halves")  # what determines a distance


def run(config, workdir):
    """Measures the distances of config.msd with a model of `workdir`; returns the list of `msd_files.Distance`."""
    wanted = config.msd
    _check(wanted)
    conditions = list_conditions(wanted.corruptions, wanted.severity)
    errors = _errors(wanted, conditions) if wanted.errors else None
    with trained_models.open_workdir(workdir, config) as own:
        if config.ranges:
            own.train.corruption_options = config.train.corruption_options
        options = augmentation.static_options(own.train)
        schemes = transforms.find(wanted.schemes, options)
        extractor = open_extractor(own, wanted, workdir)
        warn_of_tables((*wanted.corruptions, *wanted.schemes), extractor.images.shape[1:])
        settings = {key: wanted[key] for key in _SETTINGS} | {"options": options}
        folder = open_folder(workdir / wanted.out, settings, ("centres", "schemes"))
        centres = {}
        for condition in tqdm(conditions, desc="centres", unit="condition", dynamic_ncols=True):
            centres[condition.corruption, condition.label] = measure_centre(
                folder, extractor, wanted, condition, options
            )
        write_centres(folder / "features.npz", {k: v[0].astype(np.float32) for k, v in centres.items()})
        del centres[
            tables.CLEAN, 0
        ]  # for the directions of corruptions (tools.predict_overlap); no scheme is measured against it
        found = {}
        for scheme in tqdm(schemes, desc="schemes", unit="scheme", dynamic_ncols=True):
            found[scheme.name] = _scheme_distances(folder, extractor, wanted, scheme, centres)
        return _write(folder, wanted, own, centres, found, errors)


def _errors(wanted, conditions):
    """Errors of the tables that config.msd.errors names, at the severities whose distances are measured."""
    paths = sorted(glob.glob(wanted.errors))
    if not paths:
        raise FileNotFoundError(f"expected counts.csv files under config.msd.errors={wanted.errors!r}, found none")
    known = {(condition.corruption, condition.label) for condition in conditions}
    counts = [count for path in paths for count in tables.read_counts(path)]
    adapted = f"{wanted.model}+bn="
    if all(count.model.startswith(adapted) for count in counts):
        counts = [count._replace(model=count.model.removeprefix(adapted)) for count in counts]
    return mean_errors(count for count in counts if (count.corruption, count.severity) in known)


def _check(wanted):
    least = {"images": 1, "transforms": 1, "draws": 1, "halves": 0}
    for key, value in least.items():
        if wanted[key] < value:
            raise ValueError(f"expected config.msd.{key} of at least {value}, found {wanted[key]}")
    if wanted.halves == 1:
        raise ValueError("expected config.msd.halves 0 or at least 2, found 1: a single half has no spread")


def _scheme_distances(folder, extractor, wanted, scheme, centres):
    """MSD and MMD of a scheme to every centre, {(corruption, severity): [2, 1 + halves]}; measures what is missing."""
    path = folder / "schemes" / f"{scheme.name.replace('/', '.')}.npz"
    known = files.read_arrays(path, REMEDY) if path.exists() else {}
    names = {key: f"{key[0]}|{key[1]}" for key in centres}
    missing = [key for key in centres if names[key] not in known]
    if missing:
        stream = msd_mmd.Stream(np.stack([centres[key] for key in missing], axis=1))
        number = wanted.transforms if scheme.random else 1
        members = msd_mmd.halves(number, wanted.halves, generator(wanted, TRANSFORMS, scheme.name))
        start = 0
        key = draw_key(wanted, f"scheme {scheme.name}")
        for chunk in extractor.stream(scheme, key, number, description=scheme.name):
            stream.add(chunk, members[:, start : start + len(chunk)])
            start += len(chunk)
        measured = np.stack([stream.msd, stream.mmd])
        known |= {names[key]: measured[:, :, k] for k, key in enumerate(missing)}
        files.write_arrays(path, known)
    return {key: known[names[key]] for key in centres}


def _write(folder, wanted, own, centres, found, errors):
    """Writes the tables and, with errors, the correlations; returns the rows of msd.csv."""
    record = provenance()
    workdirs.write_json(folder / "provenance.json", {"msd": wanted.to_dict(), "provenance": record})
    comment = (
        f"{own.dataset.name}, {own.model.name}, {wanted.model} seed {wanted.model_seed}, {wanted.images} images, "
        f"{wanted.transforms} transforms, {wanted.draws} draws, {summary(record)}"
    )
    rows = []
    for scheme, by_centre in found.items():
        for name, severity in centres:
            values = [float(x) for one in by_centre[name, severity] for x in (one[0], msd_mmd.spread(one))]
            rows.append(Distance(scheme, name, severity, *values))
    write_msd(folder / "msd.csv", rows, comment)
    means = mean_distances(rows)
    width = max(map(len, found))
    print(f"\n{'scheme':{width}}    MSD    MMD   (means over the corruptions)")
    for scheme in found:
        msd, mmd = np.mean([value for key, value in means.items() if key[0] == scheme], axis=0)
        print(f"{scheme:{width}} {msd:6.3f} {mmd:6.3f}")
    if errors is not None:
        found = correlations(means, errors)
        write_correlations(folder / "correlations.csv", found, comment)
        _show_correlations(found)
        figure = scatter_panels(
            {key: msd for key, (msd, _) in means.items()}, errors, {row.corruption: row.msd for row in found},
            title="Minimal sample distance and error", provenance=comment,
        )  # fmt: skip
        figures.save(figure, folder / "correlations")
    return rows


def _show_correlations(rows):
    width = max(len(row.corruption) for row in rows)
    print(
        f"\nSpearman's rho with the error, across schemes\n{'corruption':{width}}  schemes  MSD (95 %)            MMD"
    )
    for row in rows:
        print(
            f"{row.corruption:{width}}  {row.schemes:7d}  {row.msd:+.2f} ({row.msd_lower:+.2f}..{row.msd_upper:+.2f})  "
            f"{row.mmd:+.2f} ({row.mmd_lower:+.2f}..{row.mmd_upper:+.2f})"
        )


def main(argv):
    with command.errors():
        config, workdir = cli.read_flags(argv)
        compiles.enable_compilation_cache()
        run(config, pathlib.Path(workdir))
    log.info("Results are in %s.", workdir / config.msd.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    app.run(main)
