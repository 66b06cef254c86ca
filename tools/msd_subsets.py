"""Subsets of an augmentation's transforms that are closest to a set of corruptions, farthest from it, or random.

    python -m tools.msd_subsets --config=configs/msd.py --workdir=runs/baseline
    python train.py --config=configs/scheme.py:stored=runs/baseline/subsets/closest_100.npz --workdir=runs/closest_100

Draws config.msd.subsets.pool transforms of config.msd.subsets.scheme, measures the distance of each to the centres of
config.msd.corruptions (as tools.msd does, with its settings), puts them in order of closeness (analysis.distances.subsets) and
writes to WORKDIR/subsets, for each size K: closest_K.npz (the first K), farthest_K.npz (the last) and random_K.npz
(uniform without replacement), which train.py takes as schemes: every image draws one of the K transforms. subsets.csv
tells the MSD of each, averaged over the corruptions and severities. Stopped anywhere, the same command continues. The
experiment is that of E. Mintun, A. Kirillov, S. Xie (2021), supplement A; `configs/msd.py:subsets` has its pool and
sizes.
"""

import pathlib

import numpy as np
from absl import app
from ml_collections import ConfigDict
from tqdm import tqdm

from analysis import tables
from analysis.distances import subsets
from corruptions import augment
from corruptions.augment import stored
from evaluation import features, trained_models, transforms
from evaluation.centres import REMEDY, SUBSETS, draw_key, generator, measure_centre, open_extractor, open_folder
from evaluation.conditions import list_conditions
from runtime import command, compiles, files
from runtime.log import log
from runtime.provenance import provenance, summary
from training import augmentation, cli

_SETTINGS = ("model", "model_seed", "seed", "images", "draws", "corruptions", "severity")
_PART = 4096  # transforms between two savings
HEADER = ("kind", "size", "msd")


def run(config, workdir):
    """Writes the subsets of config.msd.subsets; returns the rows (kind, size, mean MSD) of subsets.csv."""
    wanted = ConfigDict(config.msd.to_dict() | {"halves": 0})
    subset = wanted.subsets
    if augment.is_stored(subset.scheme):
        raise ValueError(f"expected a scheme that transforms are drawn from, found {subset.scheme!r}")
    scheme = transforms.of_scheme(subset.scheme)
    sizes = tuple(subset.sizes)
    if not sizes or not all(1 <= size <= subset.pool for size in sizes):
        raise ValueError(f"expected config.msd.subsets.sizes in 1..{subset.pool}, the pool, found {sizes}")
    conditions = list_conditions(wanted.corruptions, wanted.severity)[1:]
    with trained_models.open_workdir(workdir, config) as own:
        options = augmentation.static_options(own.train)
        extractor = open_extractor(own, wanted, workdir)
        settings = {key: wanted[key] for key in _SETTINGS}
        settings |= {"pool": subset.pool, "scheme": scheme.name, "options": options}
        folder = open_folder(workdir / subset.out, settings, ("centres", "pool"))
        centres = [
            measure_centre(folder, extractor, wanted, condition, options)[0]
            for condition in tqdm(conditions, desc="centres", unit="condition", dynamic_ncols=True)
        ]
        distances = _distances(folder, extractor, wanted, scheme, np.stack(centres))
        record = provenance()
        comment = f"{own.dataset.name}, {own.model.name}, {summary(record)}"
        origin = {"settings": settings, "dataset": own.dataset.name, "provenance": record}
        return _write(folder, extractor, wanted, scheme, distances, sizes, origin, comment)


def _distances(folder, extractor, wanted, scheme, centres):
    """Distances [pool, m] of the transforms to the centres [m, D]; parts that were measured before are read back."""
    key, parts = draw_key(wanted, f"scheme {scheme.name}"), []
    for first in tqdm(range(0, wanted.subsets.pool, _PART), desc=scheme.name, unit="part", dynamic_ncols=True):
        path = folder / "pool" / f"{first}.npz"
        if not path.exists():
            number = min(_PART, wanted.subsets.pool - first)
            chunks = [
                np.linalg.norm(chunk[:, :1].astype(np.float64) - centres, axis=-1)
                for chunk in extractor.stream(scheme, key, number, first=first, description=scheme.name)
            ]
            files.write_arrays(path, {"distances": np.concatenate(chunks)})
        parts.append(files.read_arrays(path, REMEDY)["distances"])
    return np.concatenate(parts)


def _write(folder, extractor, wanted, scheme, distances, sizes, origin, comment):
    order = subsets.closest_first(distances)
    key, shape = draw_key(wanted, f"scheme {scheme.name}"), tuple(extractor.images.shape[1:])
    rows = []
    for kind in subsets.KINDS:
        for size in sizes:
            rng = generator(wanted, SUBSETS, f"{kind} {size}")
            chosen = subsets.choose(order, size, kind, rng)
            params = {k: np.asarray(v) for k, v in features.drawn(scheme, key, chosen, shape).items()}
            about = origin | {"kind": kind, "size": size, "numbers": chosen.tolist()}
            content = stored.Stored(scheme.name, shape, f"{kind}_{size}", params, about)
            stored.write(folder / f"{kind}_{size}.npz", content)
            rows.append((kind, size, float(distances[chosen].min(axis=0).mean())))
    tables.write_rows(folder / "subsets.csv", HEADER, rows, comment)
    print(f"\n{'subset':20s}  MSD   (mean over {distances.shape[1]} corruptions and severities)")
    for kind, size, value in rows:
        print(f"{kind + ' ' + str(size):20s} {value:6.3f}")
    return rows


def main(argv):
    with command.errors():
        config, workdir = cli.read_flags(argv)
        compiles.enable_compilation_cache()
        run(config, pathlib.Path(workdir))
    log.info("Results are in %s.", workdir / config.msd.subsets.out)


if __name__ == "__main__":
    cli.define_flags("configs/msd.py")
    app.run(main)
