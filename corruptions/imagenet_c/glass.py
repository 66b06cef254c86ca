"""Glass blur of ImageNet-C: pixels copied from random neighbours, between two Gaussian blurs."""

import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, padding, register, table_for
from corruptions.primitives import color, copies, filters, padded, random

# Standard deviation of the blurs in pixels, reach of the copies in pixels, number of passes.
_TABLES = {
    "cifar": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "tiny": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "imagenet": ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "inception": ((0.8, 1, 3), (1.0, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
}


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `shifts`, int32 [passes, 2, H, W]: dy and dx of each pass and pixel, in -d..d-1.

    The severity gives `sigma`, the `reach` d and the number of `passes`; for real severities sigma is interpolated,
    the other two are rounded to whole numbers.
    """
    sigma, reach, passes = lookup(_TABLES, shape, table, severity)
    reach = jnp.round(reach).astype(jnp.int32)
    widest, _, most = map(max, zip(*_TABLES[table_for(shape, table)]))
    return {
        "shifts": random.integers(key, padded.stacked((int(most), 2), shape[:2]), -reach, reach),
        "reach": reach,
        "passes": jnp.round(passes).astype(jnp.int32),
        "sigma": sigma,
        "weights": filters.gaussian_weights(sigma, int(4 * widest + 0.5)),
    }


_LEVEL_UNITS = {"sigma": "pixels", "reach": "pixels", "passes": "count"}
_UNITS = {"shifts": "pixels, by pass, axis and pixel", "weights": "1", **_LEVEL_UNITS}
_MOVES = "copies pixels from neighbours, between two blurs"


@register(
    "blur",
    _sample,
    _UNITS,
    severity=_LEVEL_UNITS,
    straight_through=lambda image, params: _scrambled(image, params, lambda levels: levels),
    moves=_MOVES,
    padding=padding("edge"),
    alone="quick",
)
def glass_blur(image: Image, params: Params) -> Image:
    """Blurs, scrambles and blurs again: clip(G_sigma * scramble(floor(255 G_sigma * x)) / 255).

    The scramble makes `passes` passes of `copies.copied_from`, each on the result of the one before; borders are
    repeated. Source: ImageNet-C, glass_blur.
    """
    return _scrambled(image, params, color.truncated)


def _scrambled(image, params, cut):
    sides, blur = padded.own_sides(image.shape, params), (params["sigma"], params["weights"])
    levels = cut(255 * filters.gaussian(image, *blur)).reshape(-1, image.shape[-1])
    source = copies.sources(params["shifts"], params["passes"], params["reach"], sides)
    glass = copies.look_up(levels, source).astype(jnp.float32).reshape(image.shape)
    return color.clip(filters.gaussian(color.from_levels(padded.repeat_border(glass, params)), *blur))
