"""The numbers of the report: differences of pixels, of distributions, of a classifier's error rates."""

import functools
import json
import pathlib
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

import corruptions
from analysis import gallery
from benchmarks import timing
from corruptions.core.batch import from_float, to_float
from corruptions.files import digest_of
from evaluation import correctness, trained_models
from runtime import files, meshes
from runtime.log import bar, log
from tests.reference.features import features
from tests.reference.imagenet_c import expected as references
from tests.reference.photographs import photograph
from training import study

SEVERITIES = range(1, 6)
_IMAGES = {"cifar": 8, "tiny": 4, "imagenet": 2, "inception": 1}  # about as many pixels at the large sizes
_DRAWS = {32: 4, 224: 2}


def renewed(section, before, record, names, measure):
    """Measures a section of the report, {"record": ..., "rows": ...}; None where it cannot be.

    Rows that were measured `before` stay where this run has its revision, machine and packages, or is of some of their names alone: then
    the record of the whole stays, and "later" has the record of each name of this run. `measure` takes the rows that stay.
    """
    before = before or {"record": {}, "rows": {}}
    parts = [before["rows"]["rows"]] if section == "errors" and before["rows"] else before["rows"].values()
    others = {name for part in parts for name in part} - set(names)
    same = all(before["record"].get(key) == record[key] for key in ("revision", "versions", "machine"))
    if before["rows"] and not same and not others:
        log.info("%s: rows of another revision, machine or other packages are left out.", section)
    rows = measure(before["rows"] if same or others else {})
    if rows is None or same or not others:
        return rows if rows is None else {"record": record, "rows": rows}
    return before | {"rows": rows, "later": before.get("later", {}) | dict.fromkeys(names, record)}


def difference(ours, expected):
    """Computes [largest difference in levels, per cent of values that differ] of 8-bit arrays."""
    off = np.abs(np.asarray(ours, int) - np.asarray(expected, int))
    return [int(off.max()), 100 * float(np.mean(off > 0))]


def pixels(names, table):
    """Compares our 8-bit results with the float64 definitions under our draws: {name: difference per severity}."""
    side = references.SIDES[table]
    images = [gallery.photograph("", side), *(photograph(side, side, seed) for seed in range(1, _IMAGES[table]))]
    return {name: _pixels_of(name, table, images) for name in bar("corruption", names, desc=f"pixels, {table}")}


def _pixels_of(name, table, images):
    corruption = corruptions.get(name)

    @jax.jit
    def corrupt(key, image, severity):
        params = corruption.sample(key, image.shape, severity, table=table)
        return params, from_float(corruption.apply(to_float(image), params), image.dtype, corruption.rounding)

    rows = []
    for severity in SEVERITIES:
        results, expected = [], []
        for k, image in enumerate(images):
            params, ours = corrupt(jax.random.fold_in(jax.random.key(severity), k), image, severity)
            results.append(np.asarray(ours))
            expected.append(np.floor(references.expected(corruption.name, image, params, table, severity)))
        rows.append(difference(results, expected))
    return rows


def golden_pixels(names, folder, size):
    """Compares deterministic corruptions with stored results of the original: {name: difference per severity}."""
    golden = np.load(folder / f"imagenet_c_{size}.npz")
    distances = {}
    for name in names:
        if (short := name.split("/")[1]) in golden:
            key = jax.random.key(0)
            ours = [corruptions.corrupt(key, golden["clean"], name, severity) for severity in SEVERITIES]
            distances[name] = [difference(a, b) for a, b in zip(ours, golden[short], strict=True)]
    return distances


def golden_features(names, folder, size):
    """Measures the distances of feature means from the original's: {name: [[z, feature, beyond, far, number] per severity]}.

    z is the largest |ours - original| / standard error over all features and their components
    (`number` of them); beyond counts the components further off than 3 standard errors + 2 % of the
    original's mean, far those further off than 3 standard errors. Standard errors treat images as
    random, though both sides use the same ones, so they are too wide rather than too narrow.
    """
    clean = np.load(folder / f"clean_{size}.npz")["images"]
    golden = json.loads((folder / f"imagenet_c_stats_{size}.json").read_text())
    number = golden["images"] * golden["draws_per_image"]
    distances = {}
    for name in bar("corruption", names, desc=f"features, {size}"):
        by_severity = golden["corruptions"][name.split("/")[1]]
        key = jax.random.fold_in(jax.random.key(3), zlib.crc32(name.encode()))
        compare = functools.partial(_compare, clean, name, key, draws=_DRAWS[size], reference_number=number)
        distances[name] = [compare(severity, by_severity[str(severity)]) for severity in SEVERITIES]
    return distances


def _compare(clean, name, key, severity, reference, draws, reference_number):
    ours, key = [], jax.random.fold_in(key, severity)  # fresh draws, or chance would repeat itself at every severity
    for draw in range(draws):
        corrupted = np.asarray(corruptions.corrupt(jax.random.fold_in(key, draw), clean, name, severity))
        ours += [features(x, y) for x, y in zip(clean, corrupted, strict=True)]
    worst, feature, beyond, far, number = 0.0, "", 0, 0, 0
    for candidate, figures in reference.items():
        mean, std = np.array(figures["mean"]), np.array(figures["std"])
        off = np.abs(np.mean([np.atleast_1d(f[candidate]) for f in ours], axis=0) - mean)
        error = std * np.sqrt(1 / reference_number + 1 / len(ours))
        beyond += int(np.sum(off > 3 * error + 0.02 * np.abs(mean) + 1e-4))
        # Figures are stored to five decimals; components that never vary have no standard error.
        z = off / np.maximum(error, 1e-5)
        far += int(np.sum(z > 3))
        number += z.size
        if z.max() > worst:
            worst, feature = float(z.max()), candidate
    return [worst, feature, beyond, far, number]


def peer_images(python, images, names, folder):
    """Makes the missing images of imagecorruptions-imaug within `folder`, with a seed for every image and severity.

    Returns (version of the peer, {name: uint8 [5, N, H, W, 3]}); raises RuntimeError where the peer's process failed.
    """
    folder = pathlib.Path(folder) / digest_of(images)[:12]
    files.write_array(folder / "clean.npy", images)
    with timing.Peer(python, "images.py", str(folder / "clean.npy")) as peer:
        version = peer.hello["version"]
        packages = version.rpartition(", ")[0].replace(", ", "_").replace(" ", "-")  # without the number of processes
        made = {name: folder / packages / f"{name.split('/')[1]}.npy" for name in names}
        for name, file in made.items():
            if not file.exists():
                file.parent.mkdir(exist_ok=True)
                peer.spend(name=name, file=str(file))
    return version, {name: np.load(file, "r") for name, file in made.items()}


def error_rates(workdir, names, python, number, folder, data_dir=""):
    """Measures a model's errors under the levels `imagenet`, on our and on the peer's images.

    Args:
      workdir: workdir of train.py or overlap.py on CIFAR-10 or another dataset of small images; its standard model counts.
      names: qualified names.
      python: a Python with imagecorruptions-imaug, whose images are kept in `folder`.
      number: number of test images.
      data_dir: folder of the datasets; "" for the folder in the workdir's config.

    Returns:
      {"clean": error, per cent, "model", "peer": version, "number", "rows": {name: {"ours": [5], "peer": [5] (per cent),
      "difference": mean over severities of ours - peer, "se": its standard error over images}}}.
    """
    workdir, mesh = pathlib.Path(workdir), meshes.data_mesh()
    config = ConfigDict(files.read_json(workdir / "config.json"))
    config.dataset.data_dir = data_dir or config.dataset.data_dir
    dataset = study.load_data(config, mesh)[0]
    images, labels = np.asarray(dataset.test.images[:number]), jnp.asarray(dataset.test.labels[:number])
    models = trained_models.read_models(workdir, dataset, mesh)
    trained, seed = min(models, key=lambda key: (key[0] != "standard", key))

    def wrong(images):
        return ~correctness.of_model(models[trained, seed], jnp.asarray(images), labels, 500, mesh)

    version, theirs = peer_images(python, images, names, folder)
    rows = {}
    for name in bar("corruption", names, desc="errors"):
        key = jax.random.key(zlib.crc32(name.encode()))
        corrupted = (corruptions.corrupt(key, images, name, severity, table="imagenet") for severity in SEVERITIES)
        ours, peer = np.stack([wrong(images) for images in corrupted]), np.stack([wrong(i) for i in theirs[name]])
        by_image = 100 * (ours.astype(float) - peer).mean(0)
        rows[name] = {
            "ours": (100 * ours.mean(1)).tolist(),
            "peer": (100 * peer.mean(1)).tolist(),
            "difference": float(by_image.mean()),
            "se": float(by_image.std(ddof=1) / np.sqrt(len(by_image))),
        }
    model = f"{config.model.name} trained on {dataset.name} ({trained}, seed {seed})"
    clean = 100 * float(wrong(images).mean())
    return {"clean": clean, "model": model, "peer": version, "number": len(labels), "rows": rows}
