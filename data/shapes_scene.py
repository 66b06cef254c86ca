"""One picture of the dataset `shapes`: random scene parameters, and the function that draws them.

A scene is an object with a silhouette, a fill texture and a colour family before a cluttered background. Its
parameters do not depend on the class, so the same key with two classes gives the same scene with another object: only
the class's own cues tell classes apart.

Coordinates run over [-1, 1] across the image, x to the right and y down; lengths are in these units (2 is the side of
the image), so a scene looks the same at every image size, except for its pixel noise.
"""

import math

import jax
import jax.numpy as jnp

SILHOUETTES = ("disc", "square", "triangle", "star")
TEXTURES = ("plain", "striped", "checkered", "dotted")
COLOURS = ("warm", "cool")

_DISTRACTORS = 3
_WAVES = 3

# name: (lowest, highest, number of values), all uniform.
RANGES = {
    "centre": (-0.34, 0.34, 2),
    "radius": (0.54, 0.76, 1),
    "rotation": (0.0, 2 * math.pi, 1),
    "hue_within_family": (-1.0, 1.0, 1),
    "saturation": (0.35, 0.85, 1),
    "value": (0.50, 0.90, 1),
    "texture_contrast": (0.15, 0.36, 1),
    "texture_period": (0.24, 0.34, 1),
    "texture_angle": (0.0, 2 * math.pi, 1),
    "texture_phase": (0.0, 1.0, 2),
    "shade": (-0.18, 0.18, 2),
    "background_hue": (0.0, 1.0, 2),
    "background_saturation": (0.0, 0.55, 2),
    "background_value": (0.15, 0.85, 2),
    "background_angle": (0.0, 2 * math.pi, 1),
    "wave_vector": (-7.0, 7.0, 2 * _WAVES),
    "wave_phase": (0.0, 2 * math.pi, _WAVES),
    "wave_amplitude": (0.0, 0.05, _WAVES),
    "distractor_centre": (-1.0, 1.0, 2 * _DISTRACTORS),
    "distractor_radius": (0.10, 0.20, _DISTRACTORS),
    "distractor_roundness": (0.0, 1.0, _DISTRACTORS),
    "distractor_hue": (0.0, 1.0, _DISTRACTORS),
    "distractor_saturation": (0.2, 0.8, _DISTRACTORS),
    "distractor_value": (0.2, 0.9, _DISTRACTORS),
    "contrast": (0.75, 1.05, 1),
    "brightness": (-0.08, 0.08, 1),
    "noise": (0.02, 0.10, 1),
}

# The middle of each colour family on the hue circle, and the largest distance of a hue from it, both in turns.
_HUE = {"warm": 0.04, "cool": 0.56}
_HUE_SPREAD = 0.08


def sample(key: jax.Array) -> dict[str, jax.Array]:
    """Draws the parameters of one scene: for each name in `RANGES` a float32 scalar or vector."""
    count = sum(size for _, _, size in RANGES.values())
    # One draw for all names compiles much faster than one per name.
    uniform = jax.random.uniform(key, (count,))
    scene, start = {}, 0
    for name, (low, high, size) in RANGES.items():
        values = low + (high - low) * uniform[start : start + size]
        scene[name] = values[0] if size == 1 else values
        start += size
    return scene


def draw(scene: dict[str, jax.Array], silhouette: jax.Array, texture: jax.Array, colour: jax.Array, size: int):
    """Draws float32[size, size, 3] in [0, 1]: a scene with an object, before pixel noise.

    `silhouette`, `texture` and `colour` are int32 positions in `SILHOUETTES`, `TEXTURES` and `COLOURS`.
    """
    axis = (jnp.arange(size, dtype=jnp.float32) + 0.5) * (2.0 / size) - 1.0
    y, x = jnp.meshgrid(axis, axis, indexing="ij")
    pixel = 2.0 / size
    image = _background(scene, x, y, pixel)
    # The object, in its own frame: shifted, turned and with radius 1.
    px, py = x - scene["centre"][0], y - scene["centre"][1]
    distance = silhouette_distance(silhouette, *_turn(px, py, scene["rotation"]), scene["radius"])
    inside = _coverage(distance, pixel)
    hue = jnp.array([_HUE[name] for name in COLOURS])[colour] + _HUE_SPREAD * scene["hue_within_family"]
    base = hsv_to_rgb(hue, scene["saturation"], scene["value"])
    light = 1.0 + scene["shade"][0] * px + scene["shade"][1] * py
    light += scene["texture_contrast"] * texture_pattern(texture, scene, px, py)
    fill = base[None, None] * light[..., None]
    image = image + inside[..., None] * (fill - image)
    image = (image - 0.5) * scene["contrast"] + 0.5 + scene["brightness"]
    return jnp.clip(image, 0.0, 1.0)


def silhouette_distance(silhouette: jax.Array, x: jax.Array, y: jax.Array, radius: jax.Array) -> jax.Array:
    """Computes the signed distance to the outline (negative inside) in coordinate units, or a bound of it.

    Areas are 1.5 to 2.0 times the squared radius. They vary less than the radii, so size does not give shape away.
    """
    x, y = x / radius, y / radius
    r = jnp.sqrt(x * x + y * y)
    disc = r - 0.80
    square = jnp.maximum(jnp.abs(x), jnp.abs(y)) - 0.71
    triangle = jnp.maximum(y, jnp.maximum(0.866 * x, -0.866 * x) - 0.5 * y) - 0.54
    # One tenth of the star, folded by symmetry, where the outline is a straight line from tip to notch.
    angle = jnp.abs(jnp.mod(jnp.arctan2(x, -y) + math.pi / 5, 2 * math.pi / 5) - math.pi / 5)
    tip, notch = 1.20, 0.48
    nx, ny = notch * math.cos(math.pi / 5), notch * math.sin(math.pi / 5)
    length = math.hypot(nx - tip, ny)
    star = ((r * jnp.cos(angle) - tip) * ny + r * jnp.sin(angle) * (tip - nx)) / length
    return _pick(silhouette, (disc, square, triangle, star)) * radius


def texture_pattern(texture: jax.Array, scene: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Computes the relative brightness of the fill, in [-1, 1] and around 0 on average."""
    u, v = _turn(x, y, scene["texture_angle"])
    period = scene["texture_period"]
    u = 2 * math.pi * (u / period + scene["texture_phase"][0])
    v = 2 * math.pi * (v / period + scene["texture_phase"][1])
    plain = jnp.zeros_like(u)
    striped = _sharpen(jnp.sin(u))
    checkered = _sharpen(1.5 * jnp.sin(0.7 * u) * jnp.sin(0.7 * v))
    dotted = _sharpen(jnp.cos(0.8 * u) + jnp.cos(0.8 * v) - 0.7) + 0.3
    return _pick(texture, (plain, striped, checkered, dotted))


def _background(scene: dict[str, jax.Array], x: jax.Array, y: jax.Array, pixel: float) -> jax.Array:
    """Draws a gradient of two colours, waves, and small shapes of any colour."""
    ends = hsv_to_rgb(*(scene[f"background_{name}"] for name in ("hue", "saturation", "value")))
    along, _ = _turn(x, y, scene["background_angle"])
    mix = jnp.clip(0.5 + 0.5 * along, 0.0, 1.0)[..., None]
    ends = ends[:, None, None]
    image = ends[0] * (1.0 - mix) + ends[1] * mix
    for i in range(_WAVES):
        phase = scene["wave_vector"][2 * i] * x + scene["wave_vector"][2 * i + 1] * y + scene["wave_phase"][i]
        image = image + (scene["wave_amplitude"][i] * jnp.sin(phase))[..., None]
    colours = hsv_to_rgb(*(scene[f"distractor_{name}"] for name in ("hue", "saturation", "value")))
    for i in range(_DISTRACTORS):
        dx = jnp.abs(x - scene["distractor_centre"][2 * i])
        dy = jnp.abs(y - scene["distractor_centre"][2 * i + 1])
        roundness = scene["distractor_roundness"][i]
        reach = roundness * jnp.sqrt(dx * dx + dy * dy) + (1.0 - roundness) * jnp.maximum(dx, dy)
        inside = _coverage(reach - scene["distractor_radius"][i], pixel)[..., None]
        image = image + inside * (colours[i, None, None] - image)
    return image


def hsv_to_rgb(hue: jax.Array, saturation: jax.Array, value: jax.Array) -> jax.Array:
    """Converts a hue in turns (any real number), saturation and value in [0, 1] to RGB [..., 3] (Smith, 1978)."""
    sector = 6.0 * hue[..., None] + jnp.array([5.0, 3.0, 1.0])[(None,) * hue.ndim]
    k = jnp.mod(sector, 6.0)
    part = jnp.clip(jnp.minimum(k, 4.0 - k), 0.0, 1.0)
    return value[..., None] * (1.0 - saturation[..., None] * part)


def _turn(x: jax.Array, y: jax.Array, angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return cos * x + sin * y, cos * y - sin * x


def _coverage(distance: jax.Array, pixel: float) -> jax.Array:
    """Approximates the part of a pixel inside an outline at a signed distance from the pixel's centre."""
    return jnp.clip(0.5 - distance / pixel, 0.0, 1.0)


def _sharpen(wave: jax.Array) -> jax.Array:
    return jnp.clip(2.0 * wave, -1.0, 1.0)


def _pick(choice: jax.Array, options: tuple[jax.Array, ...]) -> jax.Array:
    result = options[0]
    for i, option in enumerate(options[1:], 1):
        result = jnp.where(choice == i, option, result)
    return result
