"""Stars of light: sparkles and inverse_sparkles."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.cbar import severities
from corruptions.cbar.candidate import candidate, padding, side, to_image
from corruptions.primitives import color, random, staging
from corruptions.primitives.textures.spark import spark

_STARS = 5
_FEWEST_RAYS, _MOST_RAYS = 50, 199


def _rays(key, shape, radius):
    """Numbers of rays, uniform in 50..199, of `shape`; lengths ~ N(r, r / 4), [*shape, 199]."""
    number_key, length_key = jax.random.split(key)
    numbers = random.integers(number_key, shape, _FEWEST_RAYS, _MOST_RAYS + 1)
    return numbers, radius * (1 + 0.25 * random.normal(length_key, (*shape, _MOST_RAYS)))


def _sample_sparkles(key, shape, severity, *, table=None):
    """Draws five stars: their centres ~ U[0, H) x U[0, W); the numbers of rays, uniform in 50..199;
    the rays' lengths, N(R, R/4) but at least 1, R = 0.01 s N.

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    centre_key, ray_key = jax.random.split(key)
    radius = 0.01 * side(shape) * severities.scanned("sparkles", severity, shape, table)
    numbers, lengths = _rays(ray_key, (_STARS,), radius)
    return {
        "centres": random.uniform(centre_key, (_STARS, 2)) * jnp.array([padded.own(shape)[:2]], jnp.float32),
        "rays": numbers,
        "lengths": jnp.maximum(lengths, 1.0),
    }


def _apply_sparkles(image, params):
    """Brightens the image: x <- x + w (255 - x) for each star in turn, in grey levels: w the
    brightness of `primitives.textures.spark` (C-bar, sparkles). That is 255 - (255 - x) times the
    product of all 1 - w.
    """

    def dim(darkness, star):
        centre, number, lengths = star
        return darkness * (1 - spark(image.shape, centre, lengths, number, None)), None

    stars = params["centres"], params["rays"], params["lengths"]
    darkness, _ = jax.lax.scan(dim, jnp.ones_like(image[..., 0]), stars)
    return to_image(255 - (255 - color.to_levels(image)) * darkness[..., None])


sparkles = candidate(
    "sparkles",
    "noise",
    _sample_sparkles,
    _apply_sparkles,
    (("centres", "pixels, row and column"), ("rays", "count"), ("lengths", "pixels")),
    padding=padding(),
)


def _sample_inverse(key, shape, severity, *, table=None):
    """Draws one star: its centre ~ U[H/4, 3H/4) x U[W/4, 3W/4); the number of rays, uniform in
    50..199; the rays' lengths, N(R, R/4), R = N/4 (seldom near zero or below; they are squared).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    centre_key, ray_key = jax.random.split(key)
    number, lengths = _rays(ray_key, (), 0.25 * side(shape))
    return {
        "exponent": 0.13 * severities.scanned("inverse_sparkles", severity, shape, table),
        "centre": random.uniform(centre_key, (2,), 0.25, 0.75) * jnp.array(padded.own(shape)[:2], jnp.float32),
        "rays": number,
        "lengths": lengths,
    }


def _apply_inverse(image, params):
    """Fades to white away from a star: 255 + w (x - 255) in grey levels, w the brightness of
    `primitives.textures.spark` (C-bar, inverse_sparkles).
    """
    star = staging.stage(spark(image.shape, params["centre"], params["lengths"], params["rays"], params["exponent"]))
    return to_image(255 + star[..., None] * (color.to_levels(image) - 255))


inverse_sparkles = candidate(
    "inverse_sparkles",
    "noise",
    _sample_inverse,
    _apply_inverse,
    (("exponent", "1"), ("centre", "pixels, row and column"), ("rays", "count"), ("lengths", "pixels")),
    padding=padding(),
)
