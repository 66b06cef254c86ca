"""Blurs by lens aberrations, after OpticsBench: one lens for all channels, and one with colour fringes."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import registry
from corruptions.core.corruption import Applier, Corruption, Image, Key, Parameter, Params, Severity, Shape
from corruptions.core.errors import Refused
from corruptions.core.severity import Levels, lookup
from corruptions.imagenet_c.tables import padding, table_for
from corruptions.optics.psf import psf
from corruptions.primitives import color, fourier, padded

_REACH = 15  # side of the largest kernel, pixels
BORDERS = ("reflect", "zeros")
_PAIRS = {  # Zernike numbers of an aberration, and the image of a point
    "defocus_spherical": ((3, 8), "a disk or rings"),
    "astigmatism": ((4, 5), "a cross or a diagonal cross"),
    "coma": ((6, 7), "a comet"),
    "trefoil": ((9, 10), "a star"),
}

# The lens of the benchmark `optics`. For each size class of ImageNet-C: q in pixels and the side of the kernel. Then the
# coefficients in wavelengths at severities 1 to 5, by `waves_matching` from ImageNet-C's disk of the same severity.
_LENSES = {"cifar": (0.3, 9), "tiny": (0.4, 13), "imagenet": (0.7, 25), "inception": (0.8, 31)}
_WAVES = {
    "cifar": {
        3: (0.18, 0.345, 0.423, 0.485, 0.636),
        4: (0.324, 0.636, 0.808, 0.936, 1.234),
        5: (0.405, 0.642, 0.756, 0.879, 1.298),
        6: (0.209, 0.502, 0.611, 0.694, 0.866),
        8: (0.127, 0.292, 0.362, 0.415, 0.524),
        9: (0.269, 0.561, 0.731, 0.879, 1.164),
    },
    "tiny": {
        3: (0.316, 0.372, 0.49, 0.8, 0.958),
        4: (0.594, 0.707, 0.94, 1.562, 1.878),
        5: (0.571, 0.663, 0.949, 1.547, 1.883),
        6: (0.424, 0.497, 0.649, 1.061, 1.29),
        8: (0.275, 0.316, 0.401, 0.637, 0.769),
        9: (0.559, 0.673, 0.887, 1.384, 1.668),
    },
    "imagenet": {
        3: (0.55, 0.732, 1.097, 1.458, 1.862),
        4: (1.06, 1.425, 2.155, 2.881, 3.686),
        5: (1.06, 1.421, 2.151, 2.863, 3.637),
        6: (0.729, 0.969, 1.484, 2.258, 3.429),
        8: (0.473, 0.6, 0.881, 1.38, 2.083),
        9: (0.94, 1.257, 1.895, 2.521, 3.329),
    },
    "inception": {
        3: (0.625, 0.819, 1.101, 1.614, 1.907),
        4: (1.209, 1.598, 2.163, 3.192, 3.778),
        5: (1.213, 1.595, 2.161, 3.17, 3.739),
        6: (0.843, 1.089, 1.469, 2.551, 3.391),
        8: (0.511, 0.649, 0.867, 1.576, 2.091),
        9: (1.084, 1.411, 1.896, 2.791, 3.35),
    },
}
_SAME_AS = {7: 6, 10: 9}  # turned by 90 degrees: the same blur, so the same coefficients

# The lens of `optics_release`, fitted to the kernels that OpticsBench released: for red, green and blue q and the
# displacement in pixels, defocus and spherical aberration of every kernel in wavelengths; and the coefficients of
# the aberrations, the same for the three channels.
_RELEASED_Q, _RELEASED_SHIFT = (0.777, 0.695, 0.578), (0.41, -0.11, -0.21)
_RELEASED_BASE = {3: (-0.333, -0.110, 0.417), 8: (-0.122, -0.153, -0.156)}
_RELEASED_WAVES = {
    3: (0.70, 0.90, 1.30, 1.62, 2.14),
    4: (1.02, 1.50, 2.10, 3.04, 3.78),
    5: (1.10, 1.50, 2.24, 3.04, 3.90),
    6: (-0.88, -1.34, -2.28, -3.00, -3.62),
    7: (-0.88, -1.34, -2.28, -3.00, -3.62),
    8: (0.72, 0.86, 1.42, 2.06, 2.64),
    9: (-0.85, -1.40, -2.24, -2.90, -3.40),
    10: (-0.85, -1.40, -2.24, -2.90, -3.26),
}


@functools.lru_cache
def kernels(pair: tuple[int, ...], table: str) -> np.ndarray:
    """Computes the kernels of `optics` for a size class of ImageNet-C, float64 [5, 2, n, n]: severities, aberrations of
    a pair of Zernike numbers (see `psf`), rows, columns.
    """
    q, size = _LENSES[table]
    waves = [_WAVES[table][_SAME_AS.get(number, number)] for number in pair]
    return np.array([[psf({k: w[level]}, q, size=size) for k, w in zip(pair, waves)] for level in range(5)])


@functools.lru_cache
def released_kernels(pair: tuple[int, ...]) -> np.ndarray:
    """Computes the kernels of `optics_release`, float64 [5, 2, 3, 25, 25]: the third axis is red, green, blue."""

    def kernel(number, level, channel):
        waves = {base: row[channel] for base, row in _RELEASED_BASE.items()}
        waves[number] = waves.get(number, 0.0) + _RELEASED_WAVES[number][level]
        return psf(waves, _RELEASED_Q[channel], shift=_RELEASED_SHIFT[channel], samples=88, parts=2)

    return np.array([[[kernel(k, level, c) for c in range(3)] for k in pair] for level in range(5)])


def _sample(key: Key, table: Any, severity: Severity, shape: Shape, kernel: int | None, border: str) -> Params:
    """Picks one of the kernels of a table [levels, number, ...], and says whether black surrounds the image."""
    number = np.shape(table)[1]
    if border not in BORDERS:
        raise Refused("border", "border='reflect' or 'zeros'", repr(border))
    if kernel is not None and kernel not in range(number):
        raise Refused("kernel", f"kernel=None or one of 0 to {number - 1}", repr(kernel))
    choice = jax.random.randint(key, (), 0, number) if kernel is None else kernel
    chosen = jnp.asarray(table, jnp.float32)[:, choice]
    black = jnp.bool_(border == "zeros")
    return padded.with_own_size({"kernel": lookup(chosen, severity), "black": black}, shape)


def _filter(image: Image, params: Params) -> Image:
    kernel, black = params["kernel"], params["black"]
    reach = kernel.shape[-1] // 2
    surrounded = jnp.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    nothing = jnp.pad(padded.blackened(image, params), ((reach, reach), (reach, reach), (0, 0)))
    return color.clip(fourier.correlate(jnp.where(black, nothing, surrounded), kernel))


def _applier(doc: str) -> Applier:
    """Makes `_filter` with a docstring of its own."""

    def apply(image: Image, params: Params) -> Image:
        return _filter(image, params)

    apply.__doc__ = doc
    return apply


def _listed(waves: Mapping[int, Sequence[float]], pair: tuple[int, ...]) -> str:
    """Writes the coefficients of a pair of Zernike numbers, once where they are the same."""
    rows = {
        number: ", ".join(f"{w:g}" for w in waves[number if number in waves else _SAME_AS[number]]) for number in pair
    }
    if len(set(rows.values())) == 1:
        return rows[pair[0]]
    return "; ".join(f"number {number}: {row}" for number, row in rows.items())


_OF_ANY_TABLE = padded.Padding(reach=_REACH)
_APART = "filters red, green and blue with kernels of their own"
_LEVEL_UNITS = {"waves": "wavelengths at the rim of the pupil"}
_UNITS = {"kernel": "weights by pixel", "black": "whether the border is black"}
register = registry.registrar(
    "optics",
    Levels(5),
    "nearest",
    "after OpticsBench, arXiv:2308.15499; severities of ImageNet-C",
    by_size=lambda name, shape, options: {"table": table_for(shape, options.get("table"))},
)
register_released = registry.registrar(
    "optics_release", Levels(5), "truncate", "fitted to the kernels of OpticsBench, arXiv:2308.15499"
)


def _register(name: str) -> tuple[Corruption, Corruption]:
    """Registers one aberration of both benchmarks."""
    pair, shapes = _PAIRS[name]

    def of_one_reach(shape, table):
        found = kernels(pair, table_for(shape, table))
        border = _REACH - found.shape[-1] // 2
        return {"kernels": np.pad(found, ((0, 0), (0, 0), (border, border), (border, border)))}

    def sample(
        key: Key, shape: Shape, severity: Severity, *, table: str | None = None, kernel: int | None = None,
        border: str = "reflect",
    ) -> Params:  # fmt: skip
        """Looks up two kernels of the severity and draws one, each with probability 1/2; the option `kernel`, 0 or 1, sets it."""
        tables = padded.tables(shape, table, lambda shape, table: {"kernels": kernels(pair, table_for(shape, table))})
        return _sample(key, tables["kernels"], severity, shape, kernel, border)

    def sample_released(
        key: Key, shape: Shape, severity: Severity, *, kernel: int | None = None, border: str = "zeros"
    ) -> Params:
        """Looks up two kernels of the severity and draws one, each with probability 1/2; the option `kernel`, 0 or 1, sets it."""
        return _sample(key, released_kernels(pair), severity, shape, kernel, border)

    numbers = "\n".join(
        f"{table} (q {q:g}, {size}x{size}): {_listed(_WAVES[table], pair)}" for table, (q, size) in _LENSES.items()
    )
    spread = f"Spreads each point to {shapes}: clip(k * x), k the point spread function of Zernike number {pair[0]} or {pair[1]}"
    apply = _applier(
        f"{spread}, all channels alike, borders mirrored.\n\nThe coefficient grows with severity such that k halves contrast "
        "at the same frequency as the disk of ImageNet-C's `defocus_blur` (see `psf.waves_matching`). Not OpticsBench's kernels.\n\n"
        "Coefficients in wavelengths at severities 1 to 5, by the table that the image size picks, with q and the kernel's sides "
        f"in pixels:\n\n{numbers}"
    )
    apply_released = _applier(
        f"{spread}, red, green and blue each with a kernel of its own, black around the image.\n\nThe lens is fitted to "
        "OpticsBench's kernels; it has their size and colours, and is not equal to them. Images are meant to be 224x224.\n\n"
        f"Coefficients in wavelengths at severities 1 to 5: {_listed(_RELEASED_WAVES, pair)}. q of red, green and blue: "
        f"{', '.join(f'{q:g}' for q in _RELEASED_Q)} pixels; kernels of 25x25."
    )
    own = register(
        "blur",
        sample,
        _UNITS,
        severity=_LEVEL_UNITS,
        name=name,
        padding=padding(reach=_REACH, tables=of_one_reach, axes=0),
    )(apply)
    released = register_released(
        "blur", sample_released, _UNITS, severity=_LEVEL_UNITS, name=name, mixes=_APART, padding=_OF_ANY_TABLE
    )
    return own, released(apply_released)


MEMBERS, RELEASED = zip(*map(_register, _PAIRS))


def _samples(q, size):
    """96 samples of the pupil, as the published kernels have, or more where their field would repeat within a kernel."""
    return 96 if not q > 0 or 96 * q >= size else min(1024, math.ceil(2 * size / q))


def lens(
    name: str,
    coefficients: Sequence[Mapping[int, float]],
    q: float | Sequence[float] = 0.7,
    *,
    shift: float | Sequence[float] = 0.0,
    size: int = 25,
) -> Corruption:
    """Makes the corruption of a lens with any Zernike coefficients.

    Example:
      dusk = lens("dusk", [{3: 0.3 * k, 11: 0.2} for k in range(1, 6)])  # once: each lens compiles its own program
      corruptions.corrupt(key, images, dusk, severity=4)

    Args:
      name: name of the corruption, `lens/NAME`; `corruptions.register` adds it to the names.
      coefficients: for severities 1, 2, ... each {Zernike number: wavelengths}, see `psf`.
      q: wavelength times f-number over the pixel pitch, pixels; one, or one for red, green and blue each.
      shift: displacement to the right and down, pixels; one, or one for red, green and blue each.
      size: side of the kernels, odd, at most 31 pixels.

    Raises:
      ValueError: no severities, another number of channels than one or three, or what `psf` refuses.
    """
    lenses = np.broadcast_arrays(np.asarray(q, np.float64), np.asarray(shift, np.float64))
    if lenses[0].shape not in ((), (3,)) or not coefficients or size > 2 * _REACH + 1:
        raise ValueError(
            f"expected coefficients of at least one severity, q and shift of one or three channels, size up to "
            f"{2 * _REACH + 1}; found {len(coefficients)} severities, q and shift of shape {lenses[0].shape}, size {size}"
        )
    channels = list(zip(*map(np.ravel, lenses)))
    kernels = [[psf(c, q, shift=s, size=size, samples=_samples(q, size)) for q, s in channels] for c in coefficients]
    table = np.array(kernels)[:, None]
    table = table if lenses[0].shape else table[:, :, 0]

    def sample(key: Key, shape: Shape, severity: Severity, *, border: str = "reflect") -> Params:
        """Looks up the kernel of the severity; draws nothing."""
        return _sample(key, table, severity, shape, 0, border)

    mixes = _APART if lenses[0].shape else ""
    parameters = tuple(Parameter(p, unit, "its maker") for p, unit in _UNITS.items())
    scale = Levels(len(table))
    return Corruption(
        name, "lens", "blur", sample, _filter, scale, "nearest", parameters, mixes=mixes, padding=_OF_ANY_TABLE
    )
