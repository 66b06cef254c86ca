"""CIELAB in 8 bits: L 255/100, a + 128 and b + 128 of sRGB with the white point D65.

OpenCV's 8-bit conversion is in fixed point; this one is the formula in float32, rounded to the
nearest level, and differs from OpenCV's by at most 1 level in L and 2 in a and b.
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives.staging import stage

_TO_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
)  # ITU-R BT.709
_WHITE = np.array([0.950456, 1.0, 1.088754])
_LINEAR = np.array([v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in np.arange(256) / 255])
_KNEE = 0.008856  # below it f is a straight line


def from_rgb(image: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Converts sRGB, uint8 [H, W, 3], to L, a and b, uint8 [H, W] each.

    With f(t) = t^(1/3) above .008856, 7.787 t + 16/116 below: L = 116 f(Y) - 16, a = 500 (f(X) -
    f(Y)), b = 200 (f(Y) - f(Z)), X, Y and Z relative to white.
    """
    table = jnp.asarray(_LINEAR, jnp.float32)
    linear = [stage(table.at[image[..., c].astype(jnp.int32)].get(mode="promise_in_bounds")) for c in range(3)]
    matrix = (_TO_XYZ / _WHITE[:, None]).astype(np.float32)
    x, y, z = (stage(_cube_root(row[0] * linear[0] + row[1] * linear[1] + row[2] * linear[2])) for row in matrix)
    scaled = ((116 * y - 16) * np.float32(2.55), 500 * (x - y) + 128, 200 * (y - z) + 128)
    lightness, a, b = (stage(jnp.clip(jnp.round(channel), 0, 255).astype(jnp.uint8)) for channel in scaled)
    return lightness, a, b


def to_rgb(lightness: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """Converts L, a and b, uint8 [H, W] each, to sRGB, uint8 [H, W, 3]; colours outside are cut
    off.
    """
    lightness, a, b = (channel.astype(jnp.float32) for channel in (lightness, a, b))
    y = (lightness * np.float32(100 / 255) + 16) / 116
    white = [_cube(f) for f in (y + (a - 128) / 500, y, y - (b - 128) / 200)]
    matrix = np.linalg.inv(_TO_XYZ / _WHITE[:, None]).astype(np.float32)
    linear = (jnp.clip(row[0] * white[0] + row[1] * white[1] + row[2] * white[2], 0, 1) for row in matrix)
    return jnp.stack([stage(_encoded(channel)) for channel in linear], axis=-1)


def _encoded(linear):
    bright = 1.055 * jnp.exp(jnp.log(jnp.maximum(linear, 1e-6)) / 2.4) - 0.055
    return jnp.round(255 * jnp.where(linear <= 0.0031308, 12.92 * linear, bright)).astype(jnp.uint8)


def _cube_root(t):
    return jnp.where(t > _KNEE, jnp.exp(jnp.log(jnp.maximum(t, 1e-6)) / 3), 7.787 * t + 16 / 116)


def _cube(f):
    return jnp.where(f > 7.787 * _KNEE + 16 / 116, f * f * f, (f - 16 / 116) / 7.787)
