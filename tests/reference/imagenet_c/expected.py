"""The original's results for our draws: NumPy, SciPy and Pillow definitions as one function.

`expected(name, image, params, table, severity)` returns float64 levels 0..255 before truncation.
The references share no code with the library; here they only get their arguments.
"""

import numpy as np

from tests.reference.imagenet_c import blur, color, elastic, fog, noise, pillow, snow, spatter

SIDES = {"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}  # the image sides the tables were made for
# The published weights (image, texture) of frost, by image side and severity.
FROST = {
    32: ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    64: ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
    224: ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    299: ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
}


def _snow(image, params, table, k):
    _, _, factor, threshold, radius, sigma, mix = snow.LEVELS[SIDES[table]][k]
    flakes = snow.reference_flakes(params["noise"], factor, threshold)
    streaks = blur.imagemagick(flakes, radius, sigma, float(params["angle"]))
    return snow.reference_composite(image, streaks, mix)


def _frost(image, params, table, k):
    a, b = FROST[SIDES[table]][k]
    return np.clip(a * image.astype(np.float64) + b * params["texture"], 0, 255)


def _fog(image, params, table, k):
    _, _, side, strengths, decays = next(row for row in fog.TABLES if row[0] == table)
    return fog.reference_fog(image, strengths[k], decays[k], side, params["displacements"])


def _spatter(image, params, table, k):
    _, _, sigma, threshold, strength, mud = spatter.LEVELS[SIDES[table]][k]
    layer = spatter.liquid(params["noise"], sigma, threshold)
    if mud:
        return spatter.mud(image, layer, strength, threshold)
    return spatter.water(image, layer, strength)


REFERENCES = {  # the result for (image, params, table, severity - 1)
    **{
        name: lambda image, params, table, k, of=of, rows=rows: 255 * np.clip(of(image / 255.0, rows[table][k]), 0, 1)
        for name, (of, rows) in blur.CASES.items()
    },
    **{
        name: lambda image, params, table, k, of=of, rows=rows: of(image, rows[table][k])
        for name, (of, rows) in color.CASES.items()
    },
    **{
        name: lambda image, params, table, k, name=name: noise.reference(name, image / 255.0, params)
        for name in noise.TABLES
    },
    "pixelate": lambda image, params, table, k: pillow.pixelated(image, pillow.SCALES[table][k]),
    "jpeg_compression": lambda image, params, table, k: pillow.jpeg(image, pillow.QUALITIES[table][k]),
    "glass_blur": lambda image, params, table, k: blur.glass(image, blur.GLASS[table][k], params["shifts"]),
    "motion_blur": lambda image, params, table, k: blur.imagemagick(
        image, *blur.MOTION[table][k], float(params["angle"])
    ),
    "elastic_transform": lambda image, params, table, k: elastic.reference(
        image, params["points"], params["dx"], params["dy"]
    ),
    "snow": _snow,
    "frost": _frost,
    "fog": _fog,
    "spatter": _spatter,
}


def expected(name, image, params, table, severity):
    """Float64 levels before truncation of corruption `name` (unqualified), for uint8 [H, W, 3] and what our sampler drew."""
    drawn = {key: np.asarray(value) for key, value in params.items()}
    drawn = {key: v.astype(np.float64) if v.dtype == np.float32 else v for key, v in drawn.items()}
    return np.asarray(REFERENCES[name](image, drawn, table, severity - 1), np.float64)
