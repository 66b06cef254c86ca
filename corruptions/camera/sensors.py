"""Sensors and cameras: RoboDepth's `dark`, `iso_noise`, `color_quant` and its smooth random displacement of images;
RoboBEV's failures of whole cameras, `camera_crash` and `frame_lost`, for samples of several cameras each.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import checks, clips, dispatch, forks, keys, registry
from corruptions.core.batch import image_key
from corruptions.core.corruption import Array, Image, Key, Params, Positions, Severity, Shape
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.severity import Levels, lookup
from corruptions.primitives import color, filters, padded, random, special, warps

padding = padded.Padding()
register = registry.registrar(
    "camera", Levels(5), "truncate", "RoboDepth (2023), released code, arXiv:2310.15171", padding
)

_DARK = ((0.60, 600, 0.008), (0.50, 250, 0.012), (0.40, 120, 0.018), (0.30, 50, 0.026), (0.20, 30, 0.038))
_ISO_PHOTONS, _ISO = 25.0, (0.056, 0.084, 0.126, 0.182, 0.266)
_STEPS = (8, 16, 32, 64, 128)  # 2^(8 - bits) for 5, 4, 3, 2 and 1 bits
_AMPLITUDES = (12.5, 16.25, 21.25, 25, 30)
_TRUNCATE = 3.0


def _sensor(photons, sigma, key, shape):
    """Draws a sensor's noise: a uniform number for the count of photons and a normal one for the read-out."""
    count_key, noise_key = jax.random.split(key)
    return {
        "photons": photons,
        "uniform": random.uniform(count_key, shape),
        "noise": sigma * random.normal(noise_key, shape),
    }


def _exposed(light: Image, params: Params) -> Image:
    """Counts photons and adds read-out noise: clip(min(K / N, 1) + noise), K ~ Poisson(N light)."""
    photons = params["photons"]
    counted = special.poisson_quantile(params["uniform"], photons * light) / photons
    return color.clip(jnp.minimum(counted, 1.0) + params["noise"])


def _smoothly_exposed(light: Image, params: Params) -> Image:
    """Adds the difference between the exposed and the given light as noise that does not depend on the light."""
    return color.clip(light + jax.lax.stop_gradient(_exposed(light, params) - light))


def _sample_dark(key: Key, shape: Shape, severity: Severity) -> Params:
    """Looks up `scale` and `photons`; draws `uniform` ~ U[0, 1) and `noise` ~ N(0, sigma^2), float32 [H, W, C] each."""
    scale, photons, sigma = lookup(_DARK, severity)
    return {"scale": scale, **_sensor(photons, sigma, key, shape)}


def _dimmed(image, params):
    """Stretches the image to [0, 1] by its extremes, squares and scales it; a constant image is only squared and scaled."""
    low, high = jnp.min(image), jnp.max(image)
    constant = high - low < np.finfo(np.float32).tiny  # processors count smaller differences as 0
    stretched = jnp.where(constant, image, (image - low) / jnp.where(constant, 1.0, high - low))
    return params["scale"] * stretched**2


_MIXES = "stretches by the least and the largest value of all channels"
_SENSOR = {"photons": "photons at full range", "uniform": "1", "noise": "intensity, range 0 to 1"}
_DARK_UNITS = {"scale": "light at white", "photons": "photons at full range", "sigma": "intensity, range 0 to 1"}


@register(
    "lighting",
    _sample_dark,
    {"scale": "light at white", **_SENSOR},
    severity=_DARK_UNITS,
    mixes=_MIXES,
    straight_through=lambda image, params: _smoothly_exposed(_dimmed(image, params), params),
)
def dark(image: Image, params: Params) -> Image:
    """Takes a picture in little light: clip(min(K / N, 1) + noise), K ~ Poisson(N t), t = c ((x - lo) / (hi - lo))^2.

    lo and hi are the least and the largest value of the image. Where they are equal the original divides 0 by 0; here
    t = c x^2. Values within 1e-38 count as equal. Source: RoboDepth, dark; RoboBEV, LowLight.
    """
    return _exposed(_dimmed(image, params), params)


def _sample_iso(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `uniform` ~ U[0, 1) and `noise` ~ N(0, sigma^2), float32 [H, W, C] each; `photons` is 25."""
    return _sensor(jnp.float32(_ISO_PHOTONS), lookup(_ISO, severity), key, shape)


@register(
    "noise", _sample_iso, _SENSOR, severity={"sigma": "intensity, range 0 to 1"}, straight_through=_smoothly_exposed
)
def iso_noise(image: Image, params: Params) -> Image:
    """Adds the noise of a sensor at high gain: clip(min(K / 25, 1) + noise), K ~ Poisson(25 x).

    Source: RoboDepth, iso_noise.
    """
    return _exposed(image, params)


def _sample_quant(key: Key, shape: Shape, severity: Severity) -> Params:
    """Looks up `step` = 2^(8 - bits), bits 5 to 1; draws nothing."""
    return {"step": lookup(_STEPS, severity)}


@register(
    "digital",
    _sample_quant,
    {"step": "grey levels"},
    severity={"step": "grey levels"},
    straight_through=lambda image, params: image,
)
def color_quant(image: Image, params: Params) -> Image:
    """Sets the lowest bits of each level to 0: step floor(v / step) / 255, v = 255 x rounded to a whole level.

    Source: RoboDepth and RoboBEV, color_quant.
    """
    step = params["step"]
    return color.from_levels(jnp.floor(jnp.round(color.to_levels(image)) / step) * step)


def _sample_elastic(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `dx` and `dy`, float32 [H, W], pixels to the right and down.

    Each is alpha G(U(-.005 H, .005 H)), G a Gaussian filter of standard deviation .01 H along rows and .01 W along
    columns, cut at 3, the border mirrored.
    """
    alpha, sides = lookup(_AMPLITUDES, severity), padded.tables(shape, None, _elastic_sides)["sides"]
    own = padded.own(shape) if isinstance(shape, padded.Shape) else (None, None)
    matrices = [
        filters.mirrored_matrix(side, sigma, int(_TRUNCATE * 0.01 * side + 0.5), _TRUNCATE, own_side)
        for side, sigma, own_side in zip(shape[:2], sides[1:], own)
    ]
    fields = (random.uniform(k, shape[:2], -sides[0], sides[0]) for k in jax.random.split(key))
    dx, dy = (alpha * filters.separable(field, *matrices) for field in fields)
    return {"dx": dx, "dy": dy}


def _elastic_sides(shape, table):
    """Lists what follows from the sides of an image: half the range of the noise, and the filter's two deviations."""
    height, width = shape[:2]
    return {"sides": np.array([0.005 * height, 0.01 * height, 0.01 * width], np.float32)}


def _elastic_map(shape: Shape, params: Params) -> Positions:
    return warps.positions(functools.partial(_displaced, params=params), shape, params["dx"])


def _displaced(image, params):
    places = warps.displaced(params["dy"], params["dx"])
    return warps.mirrored(image, *places, padded.own_sides(image.shape, params), "symmetric")


@register(
    "geometry",
    _sample_elastic,
    {"dx": "pixels to the right", "dy": "pixels down"},
    severity={"alpha": "pixels"},
    padding=dataclasses.replace(padding, tables=_elastic_sides, axes=0),
    moves="moves pixels by a random field",
    mapper=_elastic_map,
    reflects=lambda shape, params: warps.beyond(*warps.displaced(params["dy"], params["dx"]), shape, "symmetric"),
)
def elastic_field(image: Image, params: Params) -> Image:
    """Looks each pixel (y, x) up at (y + dy, x + dx), bilinear, the border mirrored about its edge.

    `elastic_transform` of the package imagecorruptions, which RoboDepth uses: other than ImageNet-C's, without an affine
    map. Source: imagecorruptions, elastic_transform.
    """
    return color.clip(_displaced(image, params))


def camera_crash(
    key: jax.Array,
    images: Array,
    severity: int,
    *,
    replace: bool = True,
    value_range: tuple[float, float] | None = None,
) -> jax.Array:
    """Blackens the same cameras in every sample: `severity` draws of a camera.

    The draws depend only on the key, so that a run has one set of crashed cameras whatever its batches. RoboBEV's easy,
    mid and hard are severities 2, 4 and 5. Source: RoboBEV, CameraCrash.

    Args:
      key: a typed PRNG key.
      images: [N, M, H, W, C], M cameras each, uint8 or floats.
      severity: number of draws, 1 to 5.
      replace: whether a camera may be drawn twice, as in the original; False draws different ones.
      value_range: (low, high) of float images that are not in [0, 1], whose black is low.

    Returns:
      The images, crashed cameras black: 0, or low, in all values.

    Raises:
      ValueError: images of another rank or without cameras, another severity, more different cameras than there are, or
        values outside of `value_range`.
    """
    images, black = _checked(key, images, severity, value_range)
    cameras = images.shape[1]
    if not replace and severity > cameras:
        expected, hint = f"at most {cameras} different cameras", "replace=True repeats them"
        raise Refused("severity", expected, f"severity {severity}", hint)
    crashed = jax.random.choice(key, cameras, (severity,), replace=replace)
    lost = (jnp.arange(cameras)[:, None] == crashed[None]).any(1)
    return jnp.where(lost[None, :, None, None, None], black, images)


def frame_lost(
    key: jax.Array,
    images: Array,
    severity: ArrayLike,
    *,
    index: Array | None = None,
    value_range: tuple[float, float] | None = None,
) -> jax.Array:
    """Blackens each camera of each sample with probability severity / 6, independently.

    RoboBEV's easy, mid and hard are severities 2, 4 and 5. Frames of clips count as samples: reshape [N, T, M, H, W,
    C] to [N T, M, H, W, C]. Source: RoboBEV, FrameLost.

    Args:
      key: a typed PRNG key.
      images: [N, M, H, W, C], M cameras each, uint8 or floats.
      severity: 1 to 5; may be traced.
      index: integers [N], the identity of each sample, by default 0..N-1; its draws depend on nothing else.
      value_range: (low, high) of float images that are not in [0, 1], whose black is low.

    Returns:
      The images, lost ones black: 0, or low, in all values.

    Raises:
      ValueError: images of another rank or without cameras, another severity, or values outside of `value_range`.
    """
    images, black = _checked(key, images, severity, value_range)
    cameras = images.shape[1]
    index = keys.index_of("frame_lost", index, key, images)

    def draw(position):
        own = image_key(key, position)  # a key for each camera, so that further cameras change no draw
        return jax.vmap(lambda camera: jax.random.uniform(jax.random.fold_in(own, camera)))(jnp.arange(cameras))

    lost = jax.vmap(draw)(index) < jnp.asarray(severity, jnp.float32) / 6
    return jnp.where(lost[..., None, None, None], black, images)


def _checked(key, images, severity, value_range):
    """Checks a request; returns the images and the value of black."""
    forks.refuse_forked()
    checks.key(key)
    checks.refuse_torch(images)
    images, shape = dispatch.unmasked(images), np.shape(images)
    if not hasattr(images, "dtype"):
        raise RefusedType("images", "an array of samples of cameras", type(images).__name__, "numpy.stack(samples)")
    if len(shape) != 5 or shape[1] == 0:
        expected = "images of shape (number, cameras, height, width, channels) with at least one camera"
        raise Refused("images", expected, shape)
    if images.dtype not in (np.uint8, *checks.FLOATS):
        raise RefusedType("images", "samples of uint8 or floats", images.dtype, "samples.astype(np.float32)")
    if not dispatch.is_traced(severity) and severity not in range(1, 6):
        raise Refused("severity", "a severity level 1..5", severity)
    low = 0 if value_range is None else clips.bounds(images, value_range, True)[0]
    images = dispatch.held(images)
    return images, jnp.asarray(low, images.dtype)
