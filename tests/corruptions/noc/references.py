"""The NOC candidates once more, as plain NumPy, SciPy, Pillow and matplotlib, given the draws. Slow, and written apart."""

import numpy as np
import scipy.ndimage
from matplotlib import colors
from PIL import Image


def scale(image):
    return min(image.shape[:2]) / 224


def disc_pixels(image):
    """(row, column) offsets of the disc's pixels."""
    radius = max(1.0, 6.2 * scale(image))
    return [(y, x) for y in range(-99, 99) for x in range(-99, 99) if x * x + y * y <= radius * radius]


def lozenge_pixels(image):
    radius = 6.5 * scale(image)
    if radius < 1.5:
        return [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]
    return [(y, x) for y in range(-99, 99) for x in range(-99, 99) if abs(x + 0.5) + abs(y) <= radius]


def _shapes(image, p, pixels, change):
    out = image.copy()
    for i in range(p["number"]):
        for y, x in pixels:
            place = p["rows"][i] + y, p["columns"][i] + x
            out[place] = change(out[place], i)
    return out


def quantization(image, p):
    steps = np.float32(p["steps"])
    return np.round(image.astype(np.float32) * steps) / steps


def gaussian(image, p):
    return np.clip(image + p["noise"], 0, 1)


def salt_pepper(image, p):
    out = image.copy()
    out[p["uniform"] < p["probability"]] = 1
    out[p["uniform"] < p["probability"] / 2] = 0
    return out


def blur(image, p):
    blurred = image
    for _ in range(max(1, round(5 * scale(image) ** 2))):
        blurred = scipy.ndimage.uniform_filter(blurred, size=(3, 3, 1), mode="constant")
    return (1 - p["weight"]) * image + p["weight"] * blurred


def _pil_resize(image, size, box=None):
    """Pillow's float resize, channel by channel; size = (H, W)."""
    channels = [
        np.asarray(Image.fromarray(c.astype(np.float32)).resize(size[::-1], Image.Resampling.BILINEAR, box=box))
        for c in np.moveaxis(image, -1, 0)
    ]
    return np.stack(channels, -1)


def thumbnail_resize(image, p):
    height, width = image.shape[:2]
    small = int(np.float32(height) / p["ratio"]), int(np.float32(width) / p["ratio"])
    return _pil_resize(_pil_resize(image, small), (height, width))


def _block_means(image, size):
    out = image.copy()
    for y in range(0, image.shape[0], size):
        for x in range(0, image.shape[1], size):
            out[y : y + size, x : x + size] = image[y : y + size, x : x + size].mean((0, 1))
    return out


def pixelate(image, p):
    size, (height, width) = int(p["size"]), image.shape[:2]
    if not p["mirrored_rim"]:
        padded = np.pad(image, ((0, -height % size), (0, -width % size), (0, 0)), mode="edge")
        return _block_means(padded, size)[:height, :width]
    means = _block_means(image[: height - height % size, : width - width % size], size)
    rims = [(side % size // 2, side % size - side % size // 2) for side in (height, width)]
    return np.pad(means, (*rims, (0, 0)), mode="reflect")


def artifacts(image, p):
    s, width = scale(image), image.shape[1]
    out = image.copy()
    half, high, dots, gap = max(1, round(2 * s)), round(s), round(5 * s), round(4 * s)
    for line, centre, tailed in list(zip(p["lines"], p["centres"], p["tailed"]))[: p["number"]]:
        columns = list(range(centre - half, centre + half + 1))
        right = [centre + half + gap + 2 * k for k in range(dots)]
        left = [centre - half - 2 * k for k in range(dots)]
        if tailed and dots > 1:
            columns += right if max(right) < width else []
            columns += left if min(left) >= 0 else []
        for row in range(line - high, line + high + 1):
            for column in columns:
                assert row >= 0 and column >= 0
                out[row, column] = p["grey"]
    return out


def vertical_artifacts(image, p):
    return artifacts(image.transpose(1, 0, 2), p).transpose(1, 0, 2)


def rhombus(image, p):
    return _shapes(image, p, lozenge_pixels(image), lambda _, i: p["greys"][i])


def rain(image, p):
    return _shapes(image, p, disc_pixels(image), lambda x, _: 0.5 + 0.5 * x)


def circle(image, p):
    return _shapes(image, p, disc_pixels(image), lambda _, i: p["greys"][i])


def arlequin(image, p):
    return _shapes(image, p, lozenge_pixels(image), lambda _, i: p["colour"])


def obstruction(image, p):
    out = image.copy()
    out[p["top"] : p["top"] + p["side"], p["left"] : p["left"] + p["side"]] = p["grey"]
    return out


def border(image, p):
    t = int(p["thickness"])
    out = np.full_like(image, p["grey"])
    out[t:-t, t:-t] = image[t:-t, t:-t]
    return out


def translation(image, p):
    return scipy.ndimage.shift(image, (p["dy"], p["dx"], 0), order=0, mode="constant")


def affine_matrix(image, name, degrees):
    """Output to input, [2, 3], about the centre of torchvision 0.6, (W/2 + 1/2, H/2 + 1/2); pixel x lies at x + 1/2."""
    angle = np.radians(degrees)
    turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    linear = np.array([[1, np.tan(angle)], [0, 1]] if name == "shear" else turn)
    centre = np.array([[image.shape[1]], [image.shape[0]]]) * 0.5 + 0.5
    return np.hstack([linear, centre - linear @ centre])


def _affine(image, name, p):
    height, width = image.shape[:2]
    matrix = affine_matrix(image, name, float(p["degrees"]))
    out = np.zeros_like(image)
    for y in range(height):
        x = np.arange(width)
        source = np.floor(matrix @ [x + 0.5, np.full(width, y + 0.5), np.ones(width)]).astype(int)
        inside = (source >= 0).all(0) & (source[0] < width) & (source[1] < height)
        out[y, inside] = image[source[1, inside], source[0, inside]]
    return out


def shear(image, p):
    return _affine(image, "shear", p)


def rotation(image, p):
    return _affine(image, "rotation", p)


def elastic(image, p):
    height, width = image.shape[:2]
    box = (0, p["cut"], width, height) if p["upright"] else (p["cut"], 0, width, height)
    return _pil_resize(image[box[1] :, box[0] :], (height, width))


def backlight(image, p):
    out = image - p["shift"]
    if p["upright"]:
        out[: p["split"]] = image[: p["split"]] + p["shift"]
    else:
        out[:, : p["split"]] = image[:, : p["split"]] + p["shift"]
    return np.clip(out, 0, 1)


def brightness(image, p):
    return np.clip(image + p["shift"], 0, 1)


def contrast(image, p):
    return (1 - p["weight"]) * image + p["weight"] * image.mean()


def color_distortion(image, p):
    out = image.copy()
    out[..., p["channel"]] += p["shift"]
    return np.clip(out, 0, 1)


def gray_scale(image, p):
    luma = image @ np.array([[0.299], [0.587], [0.114]])
    return p["weight"] * luma + (1 - p["weight"]) * image


def hue(image, p):
    hsv = colors.rgb_to_hsv(image)
    hsv[..., 0] = (hsv[..., 0] + float(p["turns"])) % 1
    return colors.hsv_to_rgb(hsv)
