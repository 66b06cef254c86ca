"""Fuzz: corruptions, shapes, types and severities drawn at random, against properties and slow independent references."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from tests.corruptions.extremes import BATCH, draw_severities, pictures
from tests.torture import given_draws
from tests.torture.outcomes import Outcome

NAMES = corruptions.names()
SHAPES = ((16, 16), (16, 37), (33, 46), (32, 32), (47, 48), (70, 65))
ROUNDS = 5  # batches of a case: compiling costs more than running
_TYPES = ("uint8",) * 8 + ("float32",) * 10 + ("float16", "bfloat16", "one channel")
_THOUSANDTH = 1e-3 / 255


def case(rng: np.random.Generator, folder: pathlib.Path | None = None) -> Outcome:
    """A corruption, a shape and a type drawn at random, see `attack`."""
    del folder
    corruptions.devices.bound_programs()
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
    against = given_draws.compare(rng, name, shape)
    complaints += against or []
    seen += against is not None
    story = f"{what}: {'; '.join(complaints[:6])}" if complaints else what
    return Outcome("wrong" if complaints else "same", story, seen)


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
