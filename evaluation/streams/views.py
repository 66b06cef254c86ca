"""Augmentation of a batch for consistency losses: one draw for all its images, as the released code of RoTTA and ROID.

In random order: brightness .6 to 1.4, contrast .7 to 1.3, saturation .5 to 1.5, hue +-.06 of a turn, gamma .7 to 1.3. Then
rotation +-15 degrees, shift up to 1/16 of the side, scale .9 to 1.1, and mirroring with probability 1/2. ROID mirrors what lies
beyond the borders; RoTTA, which has CoTTA's augmentation, repeats the border, then blurs and adds noise.
"""

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates

from corruptions.primitives import color

_GREY = (0.2989, 0.587, 0.114)
_REACH = 2  # pixels of the blur to each side


def augment(key: jax.Array, images: jax.Array) -> jax.Array:
    """Augments images as ROID does, uint8 or float [N, H, W, 3] in [0, 1], to float of the same shape."""
    return _augmented(key, images, "mirror", 0)


def degrade(key: jax.Array, images: jax.Array) -> jax.Array:
    """Augments images as RoTTA does: `augment` with repeated borders, then a Gaussian blur over 5 x 5 pixels, standard deviation
    .001 to .5 pixels, and Gaussian noise of standard deviation .005 for each pixel.
    """
    blur_key, noise_key = jax.random.split(jax.random.fold_in(key, 1))
    x = _augmented(key, images, "nearest", _REACH)
    x = _blurred(x, jax.random.uniform(blur_key, (), x.dtype, 0.001, 0.5))
    return jnp.clip(x + 0.005 * jax.random.normal(noise_key, x.shape, x.dtype), 0, 1)


def _augmented(key, images, borders, margin):
    """The part that both share; so many pixels beyond the borders are kept."""
    x = images.astype(jnp.float32) / 255 if images.dtype == jnp.uint8 else images
    order_key, colour_key, place_key, flip_key = jax.random.split(key, 4)
    low, high = jnp.array([0.6, 0.7, 0.5, -0.06, 0.7]), jnp.array([1.4, 1.3, 1.5, 0.06, 1.3])
    amounts = (low + (high - low) * jax.random.uniform(colour_key, (5,))).astype(x.dtype)
    steps = (_brightness, _contrast, _saturation, _hue, _gamma)
    branches = [lambda y, step=step, place=place: step(y, amounts[place]) for place, step in enumerate(steps)]
    order = jax.random.permutation(order_key, len(steps))
    x = jax.lax.fori_loop(0, len(steps), lambda k, y: jax.lax.switch(order[k], branches, y), x)
    x = _moved(place_key, x, borders, margin)
    return jnp.where(jax.random.bernoulli(flip_key), x[:, :, ::-1], x)


def _blurred(x, deviation):
    """Blurs by five weights along each axis, and cuts the two pixels at each border that lack neighbours."""
    offsets = jnp.arange(-_REACH, _REACH + 1, dtype=x.dtype)
    weights = jnp.exp(-0.5 * (offsets / deviation) ** 2)
    weights = weights / weights.sum()
    for axis in (1, 2):
        size = x.shape[axis] - 2 * _REACH
        x = sum(weights[k] * jax.lax.slice_in_dim(x, k, k + size, axis=axis) for k in range(2 * _REACH + 1))
    return x


def _brightness(x, amount):
    return jnp.clip(x * amount, 0, 1)


def _contrast(x, amount):
    mean = _grey(x).mean((1, 2, 3), keepdims=True)
    return jnp.clip(mean + (x - mean) * amount, 0, 1)


def _saturation(x, amount):
    grey = _grey(x)
    return jnp.clip(grey + (x - grey) * amount, 0, 1)


def _gamma(x, amount):
    return jnp.clip(x, 1e-8, 1) ** amount


def _grey(x):
    return (x * jnp.asarray(_GREY, x.dtype).reshape(1, 1, 1, 3)).sum(-1, keepdims=True)


def _hue(x, turn):
    return jax.vmap(color.turn_hue, (0, None))(x, turn)


def _moved(key, x, borders, margin):
    _, height, width, _ = x.shape
    draws = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0).astype(x.dtype)
    angle, scale = draws[0] * jnp.pi / 12, 1 + 0.1 * draws[1]
    shift = draws[2] * height / 16, draws[3] * width / 16
    axes = (jnp.arange(-margin, side + margin, dtype=x.dtype) for side in (height, width))
    rows, columns = jnp.meshgrid(*axes, indexing="ij")
    y, z = rows - (height - 1) / 2 - shift[0], columns - (width - 1) / 2 - shift[1]
    cos, sin = jnp.cos(angle) / scale, jnp.sin(angle) / scale
    at = [cos * y - sin * z + (height - 1) / 2, sin * y + cos * z + (width - 1) / 2]

    def channel(plane):
        return map_coordinates(plane, at, order=1, mode=borders)

    return jnp.moveaxis(jax.vmap(jax.vmap(channel))(jnp.moveaxis(x, -1, 1)), 1, -1)
