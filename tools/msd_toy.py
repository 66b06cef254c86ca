"""The toy check of MSD and MMD: mixtures of two corruptions as augmentations, against each of the two.

    python -m tools.msd_toy --config=configs/msd.py --workdir=runs/baseline

A mixture of fraction p takes that part of its transforms from config.msd.toy.first and the others from second, both at
config.msd.toy.severity. As long as a few transforms are of the second, a network can learn from them: MSD to it should
stay low until p = 1, while MMD grows with p. E. Mintun, A. Kirillov, S. Xie (2021), section 4, with motion blur and
impulse noise. Takes images, transforms and draws from config.msd, writes toy.csv and toy.png to WORKDIR/toy; the same
command continues.
"""

import pathlib

import numpy as np
from absl import app
from ml_collections import ConfigDict

from analysis import figures, tables
from analysis.distances import msd_mmd
from analysis.distances.figures import mixture_panel
from evaluation import trained_models, transforms
from evaluation.centres import REMEDY, draw_key, measure_centre, open_extractor, open_folder
from evaluation.conditions import expand, list_conditions
from runtime import command, compiles, files
from runtime.log import log
from runtime.provenance import provenance, summary
from training import augmentation, cli

_SETTINGS = ("model", "model_seed", "seed", "images", "transforms", "draws")
HEADER = ("fraction", "corruption", "msd", "mmd")


def run(config, workdir):
    """Measures the mixtures of config.msd.toy; returns the rows (fraction, corruption, msd, mmd) of toy.csv."""
    wanted = ConfigDict(config.msd.to_dict() | {"halves": 0})
    toy = wanted.toy
    names = expand((toy.first, toy.second))
    if len(names) != 2:
        raise ValueError(f"expected two corruptions in config.msd.toy, found {toy.first} and {toy.second}")
    conditions = list_conditions(names, str(toy.severity))[1:]
    if [condition.corruption for condition in conditions] != list(names):
        raise ValueError(f"expected one severity in config.msd.toy.severity, found {toy.severity!r}")
    with trained_models.open_workdir(workdir, config) as own:
        options = augmentation.static_options(own.train)
        extractor = open_extractor(own, wanted, workdir)
        settings = {key: wanted[key] for key in _SETTINGS} | {"options": options}
        folder = open_folder(workdir / toy.out, settings, ("centres", "features"))
        centres, features = [], []
        for condition in conditions:
            centres.append(measure_centre(folder, extractor, wanted, condition, options)[0])
            features.append(_features(folder, extractor, wanted, condition, options.get(condition.corruption, {})))
        found = msd_mmd.mixture_distances(*features, np.stack(centres), tuple(toy.fractions))
        rows = [
            (float(fraction), name, float(found[0][i, k]), float(found[1][i, k]))
            for i, fraction in enumerate(toy.fractions)
            for k, name in enumerate(names)
        ]
        _write(folder, rows, names, wanted, own)
    return rows


def _features(folder, extractor, wanted, condition, options):
    """Features [transforms, D] of a corruption at a severity; read back when measured before."""
    path = folder / "features" / f"{condition.file_name}.npz"
    if not path.exists():
        name = f"toy {condition.file_name}"
        transform = transforms.of_corruption(condition.corruption, condition.value, options)
        chunks = extractor.stream(transform, draw_key(wanted, name), wanted.transforms, description=name)
        files.write_arrays(path, {"features": np.concatenate([chunk[:, 0] for chunk in chunks])})
    return files.read_arrays(path, REMEDY)["features"]


def _write(folder, rows, names, wanted, own):
    comment = (
        f"fraction of {names[0]} against {names[1]}, severity {wanted.toy.severity}; {own.dataset.name}, "
        f"{own.model.name}, {wanted.images} images, {wanted.transforms} transforms, {wanted.draws} draws, "
        f"{summary(provenance())}"
    )
    tables.write_rows(folder / "toy.csv", HEADER, rows, comment)
    title = f"Mixtures of {names[0]} (the fraction) and {names[1]}"
    figures.save(mixture_panel(rows, title=title), folder / "toy")
    print(f"\n{'fraction':>8s}  {'distance to':30s}   MSD    MMD")
    for fraction, name, least, mean in rows:
        print(f"{fraction:8.2f}  {name:30s} {least:6.3f} {mean:6.3f}")


def main(argv):
    with command.errors():
        config, workdir = cli.read_flags(argv)
        compiles.enable_compilation_cache()
        run(config, pathlib.Path(workdir))
    log.info("Results are in %s.", workdir / config.msd.toy.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    app.run(main)
