"""The corruptions of ImageNet-Syn2Nat in NumPy, SciPy, Pillow and colorsys, given their draws.

Each takes an image float64 [H, W, 3] in [0, 1] and what `sample` drew.
"""

import colorsys

import numpy as np
import scipy.ndimage
import scipy.special
import scipy.stats
from PIL import Image, ImageOps

LUMA = (0.299, 0.587, 0.114)


def levels(image):
    return Image.fromarray(np.round(255 * image).astype(np.uint8))


def solarize(image, params):
    return np.asarray(ImageOps.solarize(levels(image), int(params["threshold"]))) / 255


def posterize(image, params):
    assert params["step"] == 2**6
    return np.asarray(ImageOps.posterize(levels(image), 2)) / 255


def random_contrast(image, params):
    return np.clip(image * params["factor"], 0, 1)


def random_brightness(image, params):
    return np.clip(image + params["shift"], 0, 1)


def random_gamma(image, params):
    return image ** params["exponent"]


def to_sepia(image, params):
    del params
    red, green, blue = np.moveaxis(image, -1, 0)
    sepia = [0.393 * red + 0.769 * green + 0.189 * blue, 0.349 * red + 0.686 * green + 0.168 * blue]
    return np.clip(np.stack([*sepia, 0.272 * red + 0.534 * green + 0.131 * blue], -1), 0, 1)


def channel_dropout(image, params):
    left = image.copy()
    left[..., params["channel"]] = 0
    return left


def hls(image, change):
    """Maps each pixel's (hue, lightness, saturation) by `change(row, column, h, l, s)`."""
    result = np.empty_like(image)
    for row, column in np.ndindex(image.shape[:2]):
        result[row, column] = colorsys.hls_to_rgb(*change(row, column, *colorsys.rgb_to_hls(*image[row, column])))
    return result


def color_jitter(image, params):
    def turned(x):
        return hls(x, lambda i, j, hue, light, s: ((hue + params["turns"]) % 1, light, s))

    def blended(name, x, other):
        return np.clip(params[name] * x + (1 - params[name]) * other, 0, 1)

    steps = [
        lambda x: blended("brightness", x, 0),
        lambda x: blended("contrast", x, (x @ LUMA).mean()),
        lambda x: blended("saturation", x, (x @ LUMA)[..., None]),
        turned,
    ]
    for number in params["order"]:
        image = steps[number](image)
    return image


def iso_noise(image, params):
    lightness = (image.max(-1) + image.min(-1)) / 2
    photons = scipy.stats.poisson(255 * params["intensity"] * lightness.std()).ppf(params["uniform"].astype(float))

    def noisy(i, j, hue, light, s):
        return (hue + params["turns"][i, j]) % 1, min(light + (1 - light) * photons[i, j] / 255, 1), s

    return hls(image, noisy)


def _filtered(image, params):
    kernel = params["kernel"].astype(float)[..., None]
    return np.clip(scipy.ndimage.correlate(image, kernel, mode="mirror"), 0, 1)


sharpen = emboss = _filtered


def affines(image, params):
    zoom = np.diag([1 / params["scale"], 1 / params["scale"], 1])
    middle = (np.array(image.shape) - 1) / 2 * (1, 1, 0)
    return scipy.ndimage.affine_transform(image, zoom, middle - zoom @ middle, order=1, mode="mirror")


def perspective(image, params):
    """The homography by solving its eight equations, one for each coordinate of a corner."""
    height, width, _ = image.shape
    equations, values = [], []
    for (u, v), (x, y) in zip([(0, 0), (1, 0), (1, 1), (0, 1)], params["corners"].astype(float), strict=True):
        equations += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        values += [x, y]
    matrix = np.append(np.linalg.solve(equations, values), 1).reshape(3, 3)
    rows, columns = np.mgrid[:height, :width]
    x, y, depth = np.einsum("ij,jhw->ihw", matrix, [columns / width, rows / height, np.ones((height, width))])
    places = np.stack([height * y / depth, width * x / depth])
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    places = np.clip(places + 1, 0, np.array([height + 1, width + 1])[:, None, None])
    return np.stack([scipy.ndimage.map_coordinates(padded[..., c], places, order=1) for c in range(3)], -1)


def cutout(image, params):
    image = image.copy()
    image[params["top"] : params["bottom"], params["left"] : params["right"]] = 0
    return image


def downscale(image, params):
    """OpenCV's INTER_NEAREST by a factor, then to the old size."""
    del params
    for axis in (0, 1):
        size = image.shape[axis]
        small = np.take(image, [int(np.floor(i / 0.45)) for i in range(round(0.45 * size))], axis)
        image = np.take(small, [int(np.floor(i * small.shape[axis] / size)) for i in range(size)], axis)
    return image


def random_sun_flare(image, params):
    side = min(image.shape[:2]) / 224
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]

    def disc(place, radius):
        return np.hypot(rows - place[0], columns - place[1]) <= radius

    overlay, output = image.copy(), image
    for place, opacity, radius, shade in zip(*(params[n] for n in ("ghosts", "opacity", "radius", "shade"))):
        if opacity > 0:
            overlay[disc(place.astype(float), radius)] = shade
            output = opacity * overlay + (1 - opacity) * output
    overlay = output.copy()
    for radius, weight in zip(np.linspace(1, 200, 20).astype(int), np.linspace(1, 0, 20) ** 3):
        overlay[disc(params["sun"].astype(float), radius * side)] = 1
        output = weight * overlay + (1 - weight) * output
    return output


def random_shadow(image, params):
    """Even-odd along columns, where the fast path goes along rows."""
    shaded = np.zeros(image.shape[:2], bool)
    for vertices in params["vertices"][: params["number"]].astype(float):
        inside = np.zeros_like(shaded)
        rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
        for (y, x), (next_y, next_x) in zip(vertices, np.roll(vertices, -1, axis=0)):
            if x != next_x:
                crossing = y + (columns - x) * (next_y - y) / (next_x - x)
                inside ^= ((x > columns) != (next_x > columns)) & (rows < crossing)
        shaded |= inside
    return np.where(shaded[..., None], hls(image, lambda i, j, hue, light, s: (hue, light / 2, s)), image)


def random_rain(image, params):
    side = min(image.shape[:2]) / 224
    length, reach = max(1, round(20 * side)), round(3 * side)
    image = image.copy()
    for row, column in zip(params["rows"], params["columns"]):
        for step in range(length + 1):
            place = row + step, column + int(np.round(step * np.float32(params["slant"]) / np.float32(length)))
            if place[0] < image.shape[0] and 0 <= place[1] < image.shape[1]:
                image[place] = 200 / 255
    size = (2 * reach + 1, 2 * reach + 1, 1)
    return 0.7 * scipy.ndimage.uniform_filter(image, size, mode="mirror")
