"""Sensor noise of LIBERO-Plus: five corruptions of ImageNet-C, at its own ten levels."""

import dataclasses

import jax.numpy as jnp

from corruptions import imagenet_c
from corruptions.camera.sensors import padding
from corruptions.core import registry
from corruptions.core.corruption import Corruption, Image, Key, Params, Sampler, Severity, Shape
from corruptions.core.severity import Levels, lookup
from corruptions.imagenet_c import blur, glass, motion
from corruptions.imagenet_c.fog import draws_needed
from corruptions.primitives import color, filters, padded, random, resizing
from corruptions.primitives.padded import Padding

_SOURCE = "LIBERO-Plus (2025), released code, arXiv:2510.13626"
_MOTION = ((5, 2), (8, 3), (10, 4), (12, 5), (15, 6), (18, 8), (20, 10), (25, 12), (30, 15), (35, 20))
_GAUSSIAN = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
# Step between zoom factors and number of factors; the first is 1.
_ZOOM = (
    *((0.01, 12), (0.01, 16), (0.02, 11), (0.02, 13), (0.03, 11)),
    *((0.01, 37), (0.01, 41), (0.02, 23), (0.02, 26), (0.03, 19)),
)
_LARGEST_ZOOM = max(1 + step * number for step, number in _ZOOM)
_FOG = ((0.5, 3), (1, 2.8), (1.5, 2.5), (2, 2.2), (2.5, 2), (3, 1.8), (3.5, 1.6), (4, 1.5), (4.5, 1.4), (5, 1.3))
_FOG_SIDE = 256  # side of the fractal map, pixels
# Standard deviation of the blurs in pixels, reach of the copies in pixels, number of passes.
_GLASS = (
    *((0.5, 1, 3), (0.7, 1, 3), (0.9, 2, 3), (1, 2, 2), (1.1, 3, 2)),
    *((1.3, 3, 2), (1.5, 4, 2), (1.8, 4, 2), (2.2, 5, 1), (2.5, 5, 1)),
)


def _sample_motion(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `angle` ~ U(-45, 45) degrees; computes the `weights` of up to 71 taps."""
    radius, sigma = lookup(_MOTION, severity)
    angle = random.uniform(key, (), -45.0, 45.0)
    return {"angle": angle, "weights": motion.taps(radius, sigma, max(row[0] for row in _MOTION))}


def _sample_gaussian(key: Key, shape: Shape, severity: Severity) -> Params:
    """Looks up `sigma` and computes the `weights` of its taps; draws nothing."""
    sigma = lookup(_GAUSSIAN, severity)
    return {"sigma": sigma, "weights": filters.gaussian_weights(sigma, 4 * max(_GAUSSIAN))}


def _sample_zoom(key: Key, shape: Shape, severity: Severity) -> Params:
    """Looks up the zoomed layers: their `weights` and sampling positions, `rows` and `columns`; draws nothing."""
    offsets = padded.tables(shape, None, _zoom_offsets)
    return {
        "weights": lookup(blur.zoom_weights(_ZOOM), severity),
        "rows": lookup(offsets["rows"], severity),
        "columns": lookup(offsets["columns"], severity),
    }


def _zoom_offsets(shape, table):
    return {"rows": blur.zoom_offsets(shape[0], _ZOOM), "columns": blur.zoom_offsets(shape[1], _ZOOM)}


def _zoomed(image: Image, params: Params) -> Image:
    """Averages central bilinear zooms of factors 1 to at most 1.56, as `imagenet_c/zoom_blur` does.

    Source: LIBERO-Plus, zoom_blur.
    """
    layers = params["rows"], params["columns"], params["weights"]
    return color.clip(resizing.sum_of_zooms(image, *layers, largest=_LARGEST_ZOOM))


def _sample_fog(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `displacements`, U[-1, 1), for a fractal map of side 256, or the next power of two for a larger image."""
    strength, decay = lookup(_FOG, severity)
    side = max(_FOG_SIDE, 1 << (max(shape[:2]) - 1).bit_length())
    draws = random.uniform(key, (draws_needed(side),), -1.0, 1.0)
    return {"strength": strength, "decay": decay, "displacements": draws}


def _sample_glass(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `shifts`, int32 [passes, 2, H, W], in -d..d-1, d the `reach`; real severities interpolate only sigma."""
    sigma, reach, passes = lookup(_GLASS, severity)
    reach = jnp.round(reach).astype(jnp.int32)
    widest, _, most = map(max, zip(*_GLASS))
    return {
        "shifts": random.integers(key, padded.stacked((most, 2), shape[:2]), -reach, reach),
        "reach": reach,
        "passes": jnp.round(passes).astype(jnp.int32),
        "sigma": sigma,
        "weights": filters.gaussian_weights(sigma, int(4 * widest + 0.5)),
    }


def _register(original: Corruption, sampler: Sampler, padded_by: Padding) -> Corruption:
    """Registers a corruption of ImageNet-C at LIBERO-Plus's ten levels, `camera/libero_NAME`."""
    return registry.register(
        dataclasses.replace(
            original,
            name=f"libero_{original.name}",
            benchmark="camera",
            sampler=sampler,
            scale=Levels(10),
            alone="",
            parameters=tuple(dataclasses.replace(p, source=_SOURCE) for p in original.parameters),
            severity_parameters=tuple(dataclasses.replace(p, source=_SOURCE) for p in original.severity_parameters),
            padding=padded_by,
            aliases=(),
            by_size=None,
        )
    )


_EDGE = dataclasses.replace(padding, mode="edge")
_ZOOMED = dataclasses.replace(padding, tables=_zoom_offsets)
MEMBERS = (
    _register(motion.motion_blur, _sample_motion, _EDGE),
    _register(blur.gaussian_blur, _sample_gaussian, _EDGE),
    _register(dataclasses.replace(blur.zoom_blur, applier=_zoomed), _sample_zoom, _ZOOMED),
    _register(imagenet_c.fog, _sample_fog, padding),
    _register(glass.glass_blur, _sample_glass, _EDGE),
)
