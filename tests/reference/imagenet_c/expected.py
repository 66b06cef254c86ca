"""The original's results for our draws: NumPy, SciPy and Pillow definitions as one function.

`expected(name, image, params, table, severity)` returns float64 levels 0..255 before truncation.
The references share no code with the library; here they only get their arguments.
"""

import numpy as np

from tests.reference.imagenet_c import (
    blur,
    color,
    elastic,
    fog,
    frost,
    glass,
    jpeg,
    motion,
    noise,
    pixelate,
    snow,
    spatter,
    spatter_stages,
)

SIDES = {"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}  # the image sides the tables were made for


def _blurred(name):
    reference, rows = blur.CASES[name]
    return lambda image, params, table, k: 255 * np.clip(reference(image / 255.0, rows[table][k]), 0, 1)


def _colored(name):
    reference, parameters = color.CASES[name]
    return lambda image, params, table, k: reference(image, parameters[table][k])


def _noisy(name):
    return lambda image, params, table, k: noise.reference(name, image / 255.0, params)


def _pixelate(image, params, table, k):
    return pixelate.pillow(image, pixelate.SCALES[table][k])


def _jpeg(image, params, table, k):
    return jpeg.pillow(image, jpeg.QUALITIES[table][k])


def _glass(image, params, table, k):
    return glass.reference(image, glass.TABLES[table][k], params["shifts"])


def _motion(image, params, table, k):
    return motion.imagemagick(image, *motion.TABLES[table][k], float(params["angle"]))


def _elastic(image, params, table, k):
    return elastic.reference(image, params["points"], params["dx"], params["dy"])


def _snow(image, params, table, k):
    _, _, factor, threshold, radius, sigma, mix = snow.LEVELS[SIDES[table]][k]
    flakes = snow.reference_flakes(params["noise"], factor, threshold)
    streaks = snow.reference_streaks(flakes, radius, sigma, float(params["angle"]))
    return snow.reference_composite(image, streaks, mix)


def _frost(image, params, table, k):
    a, b = frost.WEIGHTS[SIDES[table]][k]
    return np.clip(a * image.astype(np.float64) + b * params["texture"], 0, 255)


def _fog(image, params, table, k):
    _, _, side, strengths, decays = next(row for row in fog.TABLES if row[0] == table)
    return fog.reference_fog(image, strengths[k], decays[k], side, params["displacements"])


def _spatter(image, params, table, k):
    _, _, sigma, threshold, strength, mud = spatter.LEVELS[SIDES[table]][k]
    layer = spatter_stages.liquid(params["noise"], sigma, threshold)
    if mud:
        return spatter_stages.mud(image, layer, strength, threshold)
    return spatter_stages.water(image, layer, strength)


REFERENCES = {
    **{name: _blurred(name) for name in blur.CASES},
    **{name: _colored(name) for name in color.CASES},
    **{name: _noisy(name) for name in noise.TABLES},
    "pixelate": _pixelate,
    "jpeg_compression": _jpeg,
    "glass_blur": _glass,
    "motion_blur": _motion,
    "elastic_transform": _elastic,
    "snow": _snow,
    "frost": _frost,
    "fog": _fog,
    "spatter": _spatter,
}


def expected(name, image, params, table, severity):
    """Float64 levels [H, W, 3] before truncation of corruption `name` (unqualified).

    Args:
      image: uint8 [H, W, 3], square with the table's own side.
      params: what our sampler drew.
      table: `cifar`, `tiny`, `imagenet` or `inception`.
      severity: 1..5.
    """
    drawn = {key: np.asarray(value) for key, value in params.items()}
    drawn = {key: v.astype(np.float64) if v.dtype == np.float32 else v for key, v in drawn.items()}
    return np.asarray(REFERENCES[name](image, drawn, table, severity - 1), np.float64)
