"""Fuzz: corruptions, shapes, types and severities drawn at random, against properties and slow independent references."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from tests.corruptions.comparing import compiled
from tests.corruptions.extremes import BATCH, draw_severities, pictures
from tests.corruptions.noc import references as noc
from tests.reference import laion_c
from tests.reference.cbar import definitions as cbar
from tests.reference.imagenet_c import expected as imagenet_c
from tests.reference.photographs import photograph, photographs
from tests.torture.outcomes import Outcome

NAMES = corruptions.names()
SHAPES = ((16, 16), (16, 37), (33, 46), (32, 32), (47, 48), (70, 65))
ROUNDS = 5  # batches of a case: compiling costs more than running
_TYPES = ("uint8",) * 8 + ("float32",) * 10 + ("float16", "bfloat16", "one channel")
_THOUSANDTH = 1e-3 / 255
_LEVELS = {"imagenet_c": 5, "laion_c": 5, "cbar": 10}
_FEW = 2e-3  # where nearest pixels are looked up, precisions fall on two sides of a tie
BANK = photographs(48, 32, 32)
corruptions.laion_c.use_bank(BANK)  # as tests/conftest.py


def case(rng: np.random.Generator, folder: pathlib.Path | None = None) -> Outcome:
    """A corruption, a shape and a type drawn at random, see `attack`."""
    del folder
    corruptions.core.program_cache.bound_programs()
    return attack(rng, str(rng.choice(NAMES)), SHAPES[rng.integers(len(SHAPES))], str(rng.choice(_TYPES)))


def attack(rng: np.random.Generator, name: str, shape: tuple[int, int], kind: str) -> Outcome:
    """Corrupts five batches of extreme pictures, checks each, and some against a reference given the same draws."""
    what = f"{name} on {kind} {shape[0]}x{shape[1]}"
    if kind not in ("uint8", "float32"):
        return _unusual(rng, name, shape, kind, what)
    complaints, seen = [], 0
    for round_ in range(ROUNDS):
        images = _pictures(rng, shape, kind)
        severity = draw_severities(corruptions.get(name).scale, BATCH, rng)
        key, index = jax.random.key(int(rng.integers(2**31))), jnp.asarray(rng.integers(0, 2**31 - 1, BATCH), jnp.int32)
        corrupt = functools.partial(_corrupt, key, name=name)
        found = np.asarray(corrupt(images, severity=severity, index=index))
        seen += BATCH
        complaints += _properties(images, found, severity)
        if round_ == 0:
            again = np.asarray(corrupt(images, severity=severity, index=index))
            complaints += [] if np.array_equal(found, again) else ["the same call twice differs"]
        if round_ == 1 and rng.random() < 0.2:
            part = np.asarray(corrupt(images[3:6], severity=severity[3:6], index=index[3:6]))
            complaints += same_pixels(part, found[3:6], "in a smaller batch")
        if round_ == 2 and rng.random() < 0.2:
            inside = jax.jit(lambda images, severity, index, corrupt=corrupt: corrupt(images, severity, index))
            complaints += same_pixels(np.asarray(inside(images, severity, index)), found, "inside a jit")
    against = compare(rng, name, shape)
    return judged(what, complaints + (against or []), seen + (against is not None))


def judged(what: str, complaints: list[str], count: int) -> Outcome:
    """Returns the outcome of a case with these complaints."""
    story = f"{what}: {'; '.join(complaints[:6])}" if complaints else what
    return Outcome("wrong" if complaints else "same", story, count)


def _corrupt(key, images, severity, index, *, name):
    options = {"interpolate": True} if "interpolate" in corruptions.get(name).options else {}
    return corruptions.corrupt(key, images, name, severity, index=index, **options)


def _pictures(rng, shape, kind):
    images = pictures(*shape, rng)
    if kind == "uint8":
        return images
    floats = (images / np.float32(255)).astype(np.float32)
    floats[0, 0, 0] = np.finfo(np.float32).tiny
    floats[-1] = rng.random(floats[-1].shape, np.float32)
    floats[-2] = np.nextafter(np.float32(1), np.float32(0))
    return floats


def _properties(images, found, severity):
    if found.shape != images.shape or found.dtype != images.dtype:
        return [f"{found.dtype}{list(found.shape)} came back for {images.dtype}{list(images.shape)}"]
    if found.dtype == np.uint8:
        return []
    bad = np.flatnonzero(~((found >= 0) & (found <= 1)).all((1, 2, 3)))  # comparisons with NaN are false
    return [f"pictures {bad.tolist()} at severities {severity[bad].tolist()} leave [0, 1]"] if len(bad) else []


def same_pixels(found: np.ndarray, expected: np.ndarray, where: str) -> list[str]:
    """Complaints about pixels that `corrupt` promises to be the same in another batch or program."""
    different = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    if found.dtype == np.uint8:
        number = np.count_nonzero(different)
        wrong = different.max() > 1 or number > max(1, different.size / 10_000)
    else:
        number = np.count_nonzero(different > _THOUSANDTH)
        wrong = number > max(1, different.size / 1000)
    return [f"{number} of {different.size} values differ {where}, by up to {different.max():.3g}"] if wrong else []


def _unusual(rng, name, shape, kind, what):
    """Half precision and one channel: as float32 does, or refused by name."""
    levels = pictures(*shape, rng)
    key, severity = jax.random.key(int(rng.integers(2**31))), corruptions.severities(name)[-1]
    if kind == "one channel":
        images = jnp.asarray(levels[..., :1] / np.float32(255), jnp.float32)
    else:
        images = jnp.asarray(levels / np.float32(255), jnp.dtype(kind))
    try:
        found = corruptions.corrupt(key, images, name, severity)
    except (ValueError, TypeError) as error:
        named = str(images.dtype) in str(error) or "channel" in str(error) or str(images.shape[-1]) in str(error)
        return Outcome("refused" if named else "unclear", f"{what}: {error}", BATCH)
    values = np.asarray(found.astype(jnp.float32))
    if found.shape != images.shape or found.dtype != images.dtype or not ((values >= 0) & (values <= 1)).all():
        return Outcome("wrong", f"{what}: found {found.dtype}{found.shape}, {values.min()} to {values.max()}", BATCH)
    return Outcome("same", what, BATCH)


def compare(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> list[str] | None:
    """Corrupts a photograph, and compares it with a slow reference that is given the same draws.

    Returns complaints, None where there is no reference. ImageNet-C at 32x32, whose table the references have, LAION-C
    and C-bar may differ by a level, NOC by 2e-5 in [0, 1].
    """
    benchmark, bare = name.split("/")
    key, number = jax.random.key(int(rng.integers(2**31))), int(rng.integers(10_000))
    if benchmark not in _LEVELS and not hasattr({"noc": noc}.get(benchmark), bare):
        return None
    if benchmark == "cbar" and not hasattr(cbar, bare):
        return None
    even = tuple(side - side % 2 for side in shape)  # spectra of some references want even sides
    image = photograph(*{"imagenet_c": (32, 32), "laion_c": shape}.get(benchmark, even), number)
    severity = int(rng.integers(1, _LEVELS[benchmark] + 1)) if benchmark in _LEVELS else float(rng.random())
    if benchmark == "noc":
        image = (image / np.float32(255)).astype(np.float32)
    options = {"table": "cifar"} if benchmark == "imagenet_c" else {}
    params, found = compiled(name, image.shape, **options)(key, image, severity)
    params = jax.tree.map(np.asarray, params)
    off = np.abs(np.asarray(found, float) - _expected(benchmark, bare, image, params, severity))
    beyond = off > (2e-5 if benchmark == "noc" else 1)
    if beyond.mean() <= _FEW:
        return []
    return [f"{beyond.mean():.2%} of a photograph differ from the reference (severity {severity}, photograph {number})"]


def _expected(benchmark, bare, image, params, severity):
    if benchmark == "imagenet_c":
        return np.floor(imagenet_c.expected(bare, image, params, "cifar", severity))
    if benchmark == "laion_c":
        return laion_c.definition(bare, BANK)(image, params, severity)
    if benchmark == "cbar":
        return getattr(cbar, bare)(image, {k: np.float64(v) if v.dtype == np.float32 else v for k, v in params.items()})
    return getattr(noc, bare)(image.astype(np.float64), params)
