"""How strong a corruption is: the PSNR and SSIM of corrupted images to their originals, at each severity.

Both measure the change of pixels, not the difficulty of an image: a shifted hue or a shear of a few pixels has a low
PSNR, and people still read the image at once.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import dm_pix
import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from corruptions.core.batch import to_float
from corruptions.core.keys import named_key

CEILING = 10 * math.log10(12 * 255**2)
"""PSNR in dB of rounding to 8 bits (58.9), the largest that counts: the PSNR of equal images is infinite."""


class Strength(NamedTuple):
    """Similarity of corrupted images to their originals, as means with standard errors."""

    corruption: str  # qualified name
    severity: int | float  # level, or fraction of the range
    images: int  # how many were measured
    psnr: float  # peak signal-to-noise ratio, dB, at most `CEILING`
    psnr_se: float  # its standard error
    ssim: float  # structural similarity, at most 1
    ssim_se: float  # its standard error
    unchanged: float  # fraction of the images that came back bit for bit


@jax.jit
def similarities(originals: jax.Array, corrupted: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compares images pair by pair.

    PSNR is -10 log10 of the mean squared error of all pixels and channels. SSIM (Z. Wang et al., "Image Quality
    Assessment: From Error Visibility to Structural Similarity", 2004) takes a Gaussian window of 11 pixels, standard
    deviation 1.5, where it fits in the image, and is averaged over places and channels.

    Args:
      originals, corrupted: [N, H, W, 3], uint8 or float32 in [0, 1], H and W at least 11.

    Returns:
      (PSNR in dB, infinite for equal images; SSIM; whether the two are equal), [N] each.
    """

    def compare(pair):
        original, other = map(to_float, pair)
        with jax.numpy_dtype_promotion("standard"):  # dm_pix mixes integers and floats
            return dm_pix.psnr(original, other), dm_pix.ssim(original, other), jnp.all(original == other)

    # One image at a time: `dm_pix.ssim` of a whole batch is a convolution over thousands of rows,
    # which takes a CPU 17 times as long.
    return jax.lax.map(compare, (originals, corrupted))


def summary(name: str, severity: int | float, psnr: np.ndarray, ssim: np.ndarray, unchanged: np.ndarray) -> Strength:
    """Averages the similarities of images, [N] each; ValueError: fewer than two, which have no standard error."""
    number = len(psnr)
    if number < 2:
        raise ValueError(f"expected at least two images, for a standard error, found {number}")
    bounded = np.minimum(np.asarray(psnr, np.float64), CEILING)
    similar = np.asarray(ssim, np.float64)
    errors = [float(values.std(ddof=1)) / math.sqrt(number) for values in (bounded, similar)]
    shares = float(bounded.mean()), errors[0], float(similar.mean()), errors[1], float(np.mean(unchanged))
    return Strength(corruptions.get(name).qualified_name, severity, number, *shares)


def strength(images: np.ndarray, name: str, severity: int | float, seed: int = 0, table: str | None = None) -> Strength:
    """Measures a corruption at a severity on some images.

    The draws equal the draws of `corruptions.write_dataset` with the same seed: image i has the key
    `fold_in(fold_in(key(seed), crc32(qualified name)), i)`.

    Args:
      images: uint8 [N, H, W, 3], N at least 2.
      name, severity: a corruption, and its level or the fraction of its range.
      seed: seed of the draws.
      table: severity table, where the corruption has several; by default chosen from the image size.

    Raises:
      ValueError: as `corruptions.corrupt` and `summary`.
    """
    corruption = corruptions.get(name)
    key = named_key(seed, corruption.qualified_name)
    options = {"table": table} if table is not None and "table" in corruption.options else {}
    corrupted = corruptions.corrupt(key, images, corruption, severity, **options)
    return summary(corruption.qualified_name, severity, *map(np.asarray, similarities(images, corrupted)))


def conditions(benchmark: str) -> tuple[tuple[str, int | float], ...]:
    """Lists (corruption, severity) for each member of a benchmark and each of its severities, mildest first."""
    return tuple((n, s) for n in corruptions.names(benchmark) for s in corruptions.severities(n, benchmark))


def strengths(
    images: np.ndarray, benchmark: str, seed: int = 0, names: Collection[str] | None = None
) -> Iterator[Strength]:
    """Measures every condition of a benchmark, or of its members in `names`, in the ranges that its levels were selected from; see
    `strength`.
    """
    table = corruptions.cbar.BENCHMARK_TABLE.get(benchmark)
    for name, severity in conditions(benchmark):
        if names is None or name in names:
            yield strength(images, name, severity, seed, table)


def steps(rows: Sequence[Strength]) -> list[int | None]:
    """Compares each severity of a corruption with the one before, by PSNR; the mildest stands first.

    Returns:
      For all rows but the first: 1 where the PSNR is higher than before, by more than two standard errors of the
      difference (taken as independent, which is cautious: the images are the same), 0 where PSNR and SSIM are the same
      to the last bit, -1 where the PSNR is lower by as much, None where the two do not differ significantly.
    """
    signs = []
    for before, row in itertools.pairwise(rows):
        difference, error = row.psnr - before.psnr, math.hypot(row.psnr_se, before.psnr_se)
        if (row.psnr, row.ssim) == (before.psnr, before.ssim):
            signs.append(0)
        else:
            signs.append(int(math.copysign(1, difference)) if abs(difference) > 2 * error else None)
    return signs


def severity_names(benchmark: str) -> Sequence[str]:
    """Names a table's columns: levels, or fractions of a range; 1 to 5 where members differ."""
    rows = {corruptions.severities(name, benchmark) for name in corruptions.names(benchmark)}
    first = next(iter(rows))
    return [f"{severity:g}" for severity in (first if len(rows) == 1 else range(1, len(first) + 1))]
