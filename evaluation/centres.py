"""Centres of corruptions in a model's feature space, and the folder of results that holds them."""

import zlib

import jax
import numpy as np

from analysis import tables
from analysis.distances import msd_mmd
from evaluation import features, trained_models, transforms
from runtime import files, meshes, settings
from training import augmentation, study

REMEDY = "remove it to measure it again"  # of a damaged file of features or distances
IMAGES, DRAWS, TRANSFORMS, SUBSETS = range(4)  # streams of random choices


def open_folder(folder, asked, parts):
    """Makes a folder of results with the folders `parts`; refuses one with results of other settings."""
    for part in parts:
        (folder / part).mkdir(parents=True, exist_ok=True)
    refusal = f"{folder} holds results of other settings; name another folder or use the same settings"
    settings.claim(folder / "settings.json", asked, refusal)
    return folder


def open_extractor(own, wanted, workdir):
    """The model and images that all features are measured with."""
    mesh = meshes.data_mesh()
    dataset, split, _ = study.load_data(own, mesh, placed=())  # a few images of many
    if wanted.images > len(split):
        raise ValueError(f"expected config.msd.images up to {len(split)}, the training images, found {wanted.images}")
    models = trained_models.read_models(workdir, dataset.num_classes, split.images.shape[1], mesh)
    key = wanted.model, wanted.model_seed
    if key not in models:
        known = ", ".join(f"{name} seed {seed}" for name, seed in models)
        raise ValueError(f"expected config.msd.model and model_seed among {known}, found {key[0]} seed {key[1]}")
    rng = generator(wanted, IMAGES, "")
    chosen = np.sort(rng.choice(len(split), wanted.images, replace=False))
    weights = msd_mmd.half_weights(wanted.images, wanted.halves, rng)
    images = meshes.place(split.images[chosen], meshes.replicated(mesh))
    return features.Extractor(mesh, *models[key], images, weights, wanted.chunk)


def generator(wanted, stream, name):
    """The np.random.Generator of one of the streams and a name."""
    return np.random.default_rng((wanted.seed, stream, zlib.crc32(name.encode())))


def draw_key(wanted, name):
    """The key that transforms of a name are drawn with."""
    return jax.random.fold_in(jax.random.key(wanted.seed), zlib.crc32(name.encode()))


def measure_centre(folder, extractor, wanted, condition, options):
    """Mean features of a corruption at a severity, [1 + halves, D]; read back when measured before.

    `options`: corruption name -> its static options.
    """
    path = folder / "centres" / f"{condition.file_name}.npz"
    if path.exists():
        return files.read_arrays(path, REMEDY)["centre"]
    transform = transforms.IDENTITY
    if condition.corruption != tables.CLEAN:
        chosen = augmentation.with_levels(options.get(condition.corruption, {}), condition.levels)
        transform = transforms.of_corruption(condition.corruption, condition.value, chosen)
    name = f"centre {condition.file_name}"
    number = wanted.draws if transform.random else 1
    chunks = extractor.stream(transform, draw_key(wanted, name), number, description=name)
    drawn = np.concatenate(list(chunks)).astype(np.float64)
    weights = msd_mmd.half_weights(wanted.draws, wanted.halves, generator(wanted, DRAWS, name)).astype(np.float64)
    # einsum in float64: the mean of many float32 features.
    centre = np.einsum("gk,kgd->gd", weights, drawn) if transform.random else drawn[0]
    files.write_arrays(path, {"centre": centre})
    return centre
