"""A photograph under a corruption, against the slow reference that is given the same draws."""

import functools

import jax
import numpy as np

import corruptions
from corruptions.batch import from_float, to_float
from tests.corruptions.noc import references as noc
from tests.reference import laion_c
from tests.reference.cbar import definitions as cbar
from tests.reference.imagenet_c import expected as imagenet_c
from tests.reference.photographs import photograph, photographs

BANK = photographs(48, 32, 32)
corruptions.laion_c.use_bank(BANK)  # as tests/conftest.py
_FEW = 2e-3  # where nearest pixels are looked up, precisions fall on two sides of a tie


def compare(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> list[str] | None:
    """Returns complaints about one photograph, None where there is no reference.

    ImageNet-C at 32x32, whose table the references have, and C-bar may differ by a level, NOC by 2e-5 in [0, 1].
    """
    benchmark, bare = name.split("/")
    seed, image_seed = int(rng.integers(2**31)), int(rng.integers(10_000))
    if benchmark == "imagenet_c":
        return _imagenet_c(bare, image_seed, int(rng.integers(1, 6)), seed)
    if benchmark == "laion_c":
        return _laion_c(bare, photograph(*shape, image_seed), int(rng.integers(1, 6)), seed)
    if not hasattr({"cbar": cbar, "noc": noc}.get(benchmark), bare):
        return None
    image = photograph(*(side - side % 2 for side in shape), image_seed)  # spectra of some references want even sides
    if benchmark == "cbar":
        return _cbar(bare, image, int(rng.integers(1, 11)), seed)
    return _noc(bare, (image / np.float32(255)).astype(np.float32), float(rng.random()), seed)


def _imagenet_c(name, image_seed, severity, seed):
    image = photograph(32, 32, image_seed)
    params, found = _compiled(f"imagenet_c/{name}", table="cifar")(jax.random.key(seed), image, severity)
    expected = np.floor(imagenet_c.expected(name, image, params, "cifar", severity))
    return _complaints(np.abs(np.asarray(found, int) - expected) > 1, severity, seed)


def _cbar(name, image, severity, seed):
    params, found = _compiled(f"cbar/{name}")(jax.random.key(seed), image, severity)
    params = {k: np.float64(v) if v.dtype == np.float32 else np.asarray(v) for k, v in params.items()}
    return _complaints(np.abs(np.asarray(found, int) - getattr(cbar, name)(image, params)) > 1, severity, seed)


def _laion_c(name, image, severity, seed):
    params, found = _compiled(f"laion_c/{name}")(jax.random.key(seed), image, severity)
    expected = laion_c.definition(name, BANK)(image, jax.tree.map(np.asarray, params), severity)
    return _complaints(np.abs(np.asarray(found, int) - expected) > 1, severity, seed)


def _noc(name, image, severity, seed):
    params, found = _compiled(f"noc/{name}")(jax.random.key(seed), image, severity)
    expected = getattr(noc, name)(image.astype(np.float64), jax.tree.map(np.asarray, params))
    return _complaints(np.abs(found - expected) > 2e-5, severity, seed)


def _complaints(beyond, severity, seed):
    if beyond.mean() <= _FEW:
        return []
    return [f"{beyond.mean():.2%} of a photograph differ from the reference (severity {severity}, key {seed})"]


@functools.lru_cache(maxsize=60)
def _compiled(name, **options):
    """(key, image, severity) -> (params, corrupted image of the same type)."""
    corruption = corruptions.get(name)

    @jax.jit
    def run(key, image, severity):
        params = corruption.sample(key, image.shape, severity, **options)
        return params, from_float(corruption.apply(to_float(image), params), image.dtype, corruption.rounding)

    return run
