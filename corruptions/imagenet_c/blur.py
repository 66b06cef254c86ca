"""Blurs of ImageNet-C: defocus (a disk), Gaussian and zoom."""

import functools
from collections.abc import Sequence

import numpy as np

from corruptions.core import severity as severities
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, padding, register, table_for
from corruptions.primitives import color, filters, fourier, padded, resizing

# Disk radius and standard deviation of the anti-aliasing, both in pixels.
_DEFOCUS = {
    "cifar": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "tiny": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
    "imagenet": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "inception": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
}
_REACH = 12  # radius of the largest disk
_GAUSSIAN = {
    "cifar": (0.4, 0.6, 0.7, 0.8, 1.0),
    "tiny": (0.5, 0.75, 1.0, 1.25, 1.5),
    "imagenet": (1.0, 2.0, 3.0, 4.0, 6.0),
    "inception": (1.5, 2.5, 3.5, 4.5, 6.5),
}
# Step between zoom factors and number of factors; the first is 1.
_ZOOM_SMALL = ((0.01, 7), (0.01, 12), (0.01, 16), (0.01, 21), (0.01, 26))
_ZOOM_LARGE = ((0.01, 12), (0.01, 16), (0.02, 11), (0.02, 13), (0.03, 11))
_ZOOM = {"cifar": _ZOOM_SMALL, "tiny": _ZOOM_SMALL, "imagenet": _ZOOM_LARGE, "inception": _ZOOM_LARGE}


def disk_kernel(radius: float, alias: float) -> np.ndarray:
    """Makes the kernel of the defocus blur: a disk smoothed by a small Gaussian, in a square array.

    The array, float64 [n, n], n = 17 or 2 radius + 1, reaches to max(8, radius); the disk X^2 + Y^2 <= radius^2 has
    sum one before smoothing with 3 (radius <= 8) or 5 taps of standard deviation `alias`, in pixels as the radius.
    Smoothing mirrors the array about its outermost samples, so a disk that touches them (radius 8, 10, 12) gains
    mass: its sum is 1.013, 1.011, ... as in the original.
    """
    reach = 8 if radius <= 8 else int(radius)
    grid = np.arange(-reach, reach + 1)
    disk = (grid[:, None] ** 2 + grid**2 <= radius**2).astype(np.float64)
    disk /= disk.sum()
    half = 1 if radius <= 8 else 2
    taps = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * alias**2))
    taps /= taps.sum()
    mirrored = np.pad(np.eye(grid.size), ((half, half), (0, 0)), mode="reflect")
    smooth = sum(w * mirrored[i : i + grid.size] for i, w in enumerate(taps))
    return smooth @ disk @ smooth.T


@functools.lru_cache
def _disk_kernels(table):
    """Stacks the kernels of the five levels, centred in arrays of one size without an empty border."""
    kernels = [disk_kernel(*row) for row in _DEFOCUS[table]]
    reach = max(k.shape[0] // 2 for k in kernels)
    kernels = np.stack([np.pad(k, reach - k.shape[0] // 2) for k in kernels])
    # Weights below 1e-12 are the tail of an anti-aliasing Gaussian of 0.1 pixel.
    empty = min(np.flatnonzero(k.max(axis=0) > 1e-12)[0] for k in kernels)
    return kernels[:, empty:-empty, empty:-empty] if empty else kernels


def _kernels(shape, table):
    return {"kernels": _disk_kernels(table_for(shape, table))}


def _kernels_of_one_reach(shape, table):
    """Pads the kernels, so that one program takes the kernels of any table."""
    kernels = _disk_kernels(table_for(shape, table))
    border = _REACH - kernels.shape[1] // 2
    return {"kernels": np.pad(kernels, ((0, 0), (border, border), (border, border)))}


def _sample_defocus(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up `kernel`, the smoothed disk; draws nothing. Real severities mix two kernels."""
    return {"kernel": severities.lookup(padded.tables(shape, table, _kernels)["kernels"], severity)}


@register(
    "blur",
    _sample_defocus,
    {"kernel": "weights by pixel"},
    severity={"radius": "pixels", "alias": "pixels"},
    padding=padding(reach=_REACH, tables=_kernels_of_one_reach, axes=0),
    alone="quick",
)
def defocus_blur(image: Image, params: Params) -> Image:
    """Filters each channel with a disk, mirrored about the border pixels: clip(kernel * x).

    Source: ImageNet-C, defocus_blur. The sums of the two largest kernels exceed one by 1 % (see `disk_kernel`), as in
    the original.
    """
    return color.clip(fourier.filter_symmetric(image, params["kernel"]))


def _sample_gaussian(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up `sigma` and computes the `weights` of its taps; draws nothing."""
    reach = int(4 * max(_GAUSSIAN[table_for(shape, table)]) + 0.5)
    sigma = lookup(_GAUSSIAN, shape, table, severity)
    return {"sigma": sigma, "weights": filters.gaussian_weights(sigma, reach)}


@register(
    "blur", _sample_gaussian, {"sigma": "pixels", "weights": "1"}, severity={"sigma": "pixels"}, padding=padding("edge")
)
def gaussian_blur(image: Image, params: Params) -> Image:
    """Filters with a Gaussian cut at 4 sigma, borders repeated: clip(G_sigma * x).

    Source: ImageNet-C, gaussian_blur.
    """
    return color.clip(filters.gaussian(image, params["sigma"], params["weights"]))


@functools.lru_cache
def zoom_offsets(size: int, rows: tuple[tuple[float, int], ...]) -> np.ndarray:
    """Tabulates source minus output position by level, zoom factor and sample: [levels, factors, size].

    `rows` are, for each level, the step between zoom factors and their number; the first factor is 1. Levels with
    fewer factors repeat the identity, with weight zero.
    """
    offsets = np.zeros((len(rows), max(count for _, count in rows), size))
    for level, (step, count) in enumerate(rows):
        # The original's own sequence, floating-point dust included: it decides crops on the edge.
        for j, factor in enumerate(np.arange(1, 1 + (count - 0.5) * step, step)):
            first, fraction = resizing.zoom_taps(size, factor)
            offsets[level, j] = first + fraction - np.arange(size)
    return offsets


def _zoom_tables(shape, table):
    rows = _ZOOM[table_for(shape, table)]
    return {"rows": zoom_offsets(shape[0], rows), "columns": zoom_offsets(shape[1], rows)}


def zoom_weights(rows: Sequence[tuple[float, int]]) -> np.ndarray:
    """Weights n layers by 1 / (n + 1) each; the image counts twice, as itself and as zoom 1: [levels, factors]."""
    weights = np.zeros((len(rows), max(count for _, count in rows)))
    for level, (_, count) in enumerate(rows):
        weights[level, :count] = 1 / (count + 1)
        weights[level, 0] *= 2
    return weights


def _sample_zoom(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up the zoomed layers; draws nothing.

    `weights` [n] of the layers, `rows` [n, H] and `columns` [n, W] their sampling positions, as offsets in pixels.
    Real severities interpolate weights and offsets.
    """
    offsets = padded.tables(shape, table, _zoom_tables)
    return {
        "weights": severities.lookup(zoom_weights(_ZOOM[table_for(shape, table)]), severity),
        "rows": severities.lookup(offsets["rows"], severity),
        "columns": severities.lookup(offsets["columns"], severity),
    }


@register(
    "blur",
    _sample_zoom,
    {"weights": "1", "rows": "pixels, by layer and row", "columns": "pixels, by layer and column"},
    severity={"step": "zoom factor", "count": "layers"},
    padding=padding(tables=_zoom_tables, quick=False),
    moves="averages enlarged images",
    alone="traced",
)
def zoom_blur(image: Image, params: Params) -> Image:
    """Averages central bilinear zooms of factors 1 to at most 1.3: clip(sum_j w_j zoom_j(x)).

    Source: ImageNet-C, zoom_blur. The original is for squares only; here each axis is zoomed by its own rule (see
    `resizing.zoom_taps`).
    """
    rows, columns = params["rows"], params["columns"]
    return color.clip(resizing.sum_of_zooms(image, rows, columns, params["weights"]))
