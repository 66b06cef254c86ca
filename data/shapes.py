"""The embedded dataset `shapes`: ten classes drawn from a seed, no download.

    python -m data.shapes --out=docs/images/shapes.png      # a contact sheet

A class is a silhouette, a texture and a colour family. Each class differs from some other class by only one of the
three, so a classifier has to use all of them, and a corruption that destroys any one of them costs accuracy:

    by colour only    warm- / cool-disc, warm- / cool-striped-square, warm- / cool-checkered-triangle
    by texture only   warm-star / warm-striped-star, cool-striped- / -dotted-square, cool- / cool-checkered-triangle
    by shape only     warm-disc / warm-star, cool-disc / cool-triangle, warm-striped-square / warm-striped-star

The project's small ResNet reaches about 96 % in six epochs (batches of 64, SGD), and loses some 60 points under
gaussian noise of sigma 0.15, 50 under random hues and 35 under a frame of 4 to 7 pixels.

Image i of a split has label i mod 10 and depends only on (seed, split, i), not on how many images
are drawn, nor on how they are batched.

A scene is an object with a silhouette, a fill texture and a colour family before a cluttered background. Its parameters do
not depend on the class, so the same key with two classes gives the same scene with another object: only the class's own
cues tell classes apart. Coordinates run over [-1, 1] across the image, x to the right and y down; lengths are in these units
(2 is the side of the image), so a scene looks the same at every image size, except for its pixel noise.
"""

import functools
import math
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from data.dataset import Dataset, Split, drawn, make_split

# (colour, texture, silhouette)
CLASSES = (
    ("warm", "plain", "disc"),
    ("cool", "plain", "disc"),
    ("warm", "striped", "star"),
    ("warm", "striped", "square"),
    ("cool", "striped", "square"),
    ("cool", "dotted", "square"),
    ("warm", "checkered", "triangle"),
    ("cool", "checkered", "triangle"),
    ("cool", "plain", "triangle"),
    ("warm", "plain", "star"),
)
CLASS_NAMES = tuple("-".join(part for part in parts if part != "plain") for parts in CLASSES)
MIN_SIZE = 16
VERSION = 1  # raise it with every change of the pixels

# Number of pictures drawn at a time, whatever their total (surplus pictures of the last batch are
# dropped), so that one compiled program rounds every pixel alike.
_BATCH = 250
_SPLITS = ("train", "test")


def load_shapes(
    name: str = "shapes",
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int = 32,
    train_limit: int | None = None,
    test_limit: int | None = None,
    train_images: int = 8000,
    test_images: int = 2000,
) -> Dataset:
    """Draws `shapes`: train and test from disjoint keys, labels 0, 1, ..., 9, 0, 1, ... in either.

    Arguments as of `data.load`: image_size is at least 16, and limits take the first images. `train_images` and `test_images`
    count the whole splits. Raises ValueError for a size, number or limit that is out of range.
    """
    del data_dir
    numbers = {"train": (train_images, train_limit), "test": (test_images, test_limit)}
    for split, (number, limit) in numbers.items():
        if number < 1 or (limit is not None and limit < 1):
            raise ValueError(f"expected {split}_images and {split}_limit of at least 1, found {number} and {limit}")
    splits = {
        split: draw_split(split, number if limit is None else min(number, limit), seed, image_size)
        for split, (number, limit) in numbers.items()
    }
    provenance = {"source": "data/shapes.py", "version": VERSION, "seed": seed, "jax": jax.__version__}
    provenance.update({split: drawn(splits[split]) for split in _SPLITS})
    return Dataset(name, CLASS_NAMES, splits["train"], splits["test"], provenance)


def draw_split(split: str, count: int, seed: int = 0, image_size: int = 32) -> Split:
    """Draws the first `count` images of "train" or "test"."""
    if image_size < MIN_SIZE:
        raise ValueError(f"expected image_size >= {MIN_SIZE}, below which textures vanish, found {image_size}")
    index = np.arange(count, dtype=np.int32)
    labels = index % len(CLASSES)
    images = draw(split_key(split, seed), index, labels, image_size)
    return make_split(images, labels, index, len(CLASSES), f"shapes {split}")


def split_key(split: str, seed: int = 0) -> jax.Array:
    """Makes the key of "train" or "test"; the generator is named, so that jax_default_prng_impl does not matter.

    Raises ValueError where the seed does not fit into 32 bits: another seed would have the same key.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"expected a seed from 0 to 2**32 - 1, found {seed}")
    return jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), _SPLITS.index(split))


def draw(key: jax.Array, index: np.ndarray, labels: np.ndarray, image_size: int = 32) -> np.ndarray:
    """Draws uint8[N, image_size, image_size, 3]: picture `index[i]` under this key, with an object of class `labels[i]`."""
    images = np.empty((len(index), image_size, image_size, 3), np.uint8)
    with jax.default_device(_device()), jax.enable_x64(False):  # draws of 64 bits are others
        key = jax.device_put(key, _device())
        for start in range(0, len(index), _BATCH):
            count = min(_BATCH, len(index) - start)
            batch = np.zeros((2, _BATCH), np.int32)
            batch[:, :count] = index[start : start + count], labels[start : start + count]
            images[start : start + count] = np.asarray(_draw_batch(key, *batch, image_size))[:count]
    return images


def _device() -> jax.Device:
    """Returns the CPU, so that an accelerator changes no pixel; another device if JAX_PLATFORMS hides the CPU."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


@functools.partial(jax.jit, static_argnums=3)
def _draw_batch(key: jax.Array, index: jax.Array, labels: jax.Array, image_size: int) -> jax.Array:
    return jax.vmap(functools.partial(_draw_one, key, image_size=image_size))(index, labels)


def _draw_one(key: jax.Array, index: jax.Array, label: jax.Array, image_size: int) -> jax.Array:
    """uint8[image_size, image_size, 3]"""
    scene_key, noise_key = jax.random.split(jax.random.fold_in(key, index))
    scene = sample(scene_key)
    kinds = (COLOURS, TEXTURES, SILHOUETTES)
    table = np.array([[kind.index(part) for kind, part in zip(kinds, parts, strict=True)] for parts in CLASSES])
    colour, texture, silhouette = jnp.array(table, jnp.int32)[label]
    image = draw_scene(scene, silhouette, texture, colour, image_size)
    image = image + scene["noise"] * _noise(noise_key, image_size)
    return jnp.round(255.0 * jnp.clip(image, 0.0, 1.0)).astype(jnp.uint8)


def _noise(key: jax.Array, image_size: int) -> jax.Array:
    """Draws uniform noise on [-1/2, 1/2]; the three channels of a pixel are bytes of one random word."""
    words = jax.random.bits(key, (image_size, image_size, 1), jnp.uint32)
    channels = jax.lax.shift_right_logical(words, jnp.array([[[8, 16, 24]]], jnp.uint32)) & jnp.uint32(255)
    return channels.astype(jnp.float32) / 255.0 - 0.5


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


def draw_scene(scene: dict[str, jax.Array], silhouette: jax.Array, texture: jax.Array, colour: jax.Array, size: int):
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


def contact_sheet(per_class: int = 8, seed: int = 0, image_size: int = 32, scale: int = 2) -> np.ndarray:
    """Draws uint8[H, W, 3]: a row of `per_class` test images per class, enlarged `scale` times, 2 pixels apart."""
    images = draw_split("test", per_class * len(CLASSES), seed, image_size).images
    images = images.repeat(scale, axis=1).repeat(scale, axis=2)
    images = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255)
    side = images.shape[1]
    grid = images.reshape(per_class, len(CLASSES), side, side, 3)
    return grid.transpose(1, 2, 0, 3, 4).reshape(len(CLASSES) * side, per_class * side, 3)


def main(argv: list[str] | None = None) -> None:
    from PIL import Image

    from runtime import command

    parser = command.Arguments(prog="python -m data.shapes", description="Writes a contact sheet of `shapes`.")
    parser.add_argument("--out", required=True, help="PNG file to write")
    parser.add_argument("--per_class", type=int, default=8, help="pictures in a row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--image_size", type=int, default=32)
    flags = parser.parse_args(argv)
    path = Path(flags.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet = contact_sheet(flags.per_class, flags.seed, flags.image_size)
    # 32 levels look the same and keep noisy pictures small; white stays white.
    Image.fromarray(np.where(sheet == 255, sheet, sheet & 0xF8 | 0x04)).save(path, optimize=True)
    print(f"{path}: {', '.join(CLASS_NAMES)}, from top to bottom")


if __name__ == "__main__":
    from runtime import command

    with command.errors():
        main()
