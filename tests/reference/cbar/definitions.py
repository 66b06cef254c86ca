"""The C-bar candidates in NumPy and float64, as their definitions read: 8-bit image and draws in, 8-bit image out."""

import numpy as np
from matplotlib import colors
from PIL import Image, ImageEnhance


def _cut(levels):
    return np.clip(levels, 0, 255).astype(np.uint8)


def _wrapped(levels):
    return (np.trunc(levels).astype(np.int64) % 256).astype(np.uint8)


def grid(image):
    y, x = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float64)
    return y, x


def _smoothstep(t):
    t = np.clip(t, 0, 1)
    return 3 * t**2 - 2 * t**3


def _luma(image):
    return image @ np.array([0.2126, 0.7152, 0.0722]) / 255


def single_frequency_greyscale(image, p):
    y, x = grid(image)
    (fx, fy), phase = p["frequencies"], p["phase"]
    return _cut(image + (p["amplitude"] * np.sin(fx * x + fy * y + phase))[..., None])


def concentric_sine_waves(image, p):
    y, x = grid(image)
    cx, cy = p["centre"]
    radius = np.sqrt((x - cx) ** 2 + (y - cy) ** 2)
    bent = radius + p["ripple"] * np.sin(p["turns"] * np.arctan2(x - cx, y - cy))
    return _cut(image + (p["amplitude"] * (np.mod(bent, p["width"]) / p["width"] - 0.5))[..., None])


def plasma_noise(image, p):
    y, x = grid(image)
    t = p["time"]
    big_x, big_y, f, u, g = x / p["scale"], y / p["scale"], 1.0, 1.0, 1.0
    for _ in range(int(p["rounds"])):
        r0, r1 = np.cos(big_y * f + t / u) / g, np.sin(big_x * f + t / u) / g
        big_x, big_y = big_x + r0 - 0.3 * r1, big_y + r1 + 0.3 * r0
        f, u, g = f * 1.93, u * 1.15, g * (2.25 - p["decay"])
    rgb = np.stack([np.sin(big_x - t), np.sin((big_x + big_y + np.sin(t)) / 2), np.sin(big_y + t)], -1)
    return _cut((1 - p["amplitude"] / 255) * image + p["amplitude"] * rgb)


def voronoi_noise(image, p):
    y, x = grid(image)
    v = np.stack([x, y], -1) / p["scale"] + 1
    cell = np.floor(v)
    distance = np.ones(image.shape[:2])
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            c = cell + np.array([i, j])
            w = c @ np.array([[13.85, 47.77], [99.41, 88.48]]).T
            hashed = np.sin(w) * np.sqrt(w) * 0.0025 * p["seed"]
            point = c + hashed - np.floor(hashed)
            distance = np.minimum(distance, np.linalg.norm(point - v, axis=-1))
    return _cut(image + (p["amplitude"] * (_smoothstep(p["contrast"] * distance) - 0.5))[..., None])


def caustic(shape, time, scale):
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    a, b = (6.28318530718 * np.mod(v / scale, 1) - 250 for v in (y, x))
    i0, i1, c = a, b, 1.0
    for n in range(5):
        t = time * (1 - 3.5 / (n + 1))
        i0, i1 = a + np.cos(t - i0) + np.sin(t + i1), b + np.sin(t - i1) + np.cos(t + i0)
        c = c + 1 / np.sqrt((0.005 * a / np.sin(i0 + t)) ** 2 + (0.005 * b / np.cos(i1 + t)) ** 2)
    return np.clip(np.abs(1.17 - (c / 5) ** 1.4) ** 8, 0, 1)


def caustic_noise(image, p):
    return _cut(image + (p["amplitude"] * caustic(image.shape, p["time"], p["scale"]))[..., None])


def _spark(image, centre, lengths, n, exponent):
    y, x = grid(image)
    dy, dx = y - centre[0], x - centre[1]
    position = (np.arctan2(dx, dy) + np.pi) / (2 * np.pi) * n
    i = np.floor(position).astype(int)
    f = position - i
    length = lengths[i % n] + f * (lengths[(i + 1) % n] - lengths[i % n])
    weight = (length**2 / (dy**2 + dx**2 + 1e-4)) ** exponent
    return np.clip((1 - (f - 0.5) ** 2) * weight, 0, 1)[..., None]


def sparkles(image, p):
    levels = image.astype(np.float64)
    for centre, n, lengths in zip(p["centres"], p["rays"], p["lengths"], strict=True):
        levels = levels + _spark(image, centre, lengths, int(n), 1) * (255 - levels)
    return _cut(levels)


def inverse_sparkles(image, p):
    star = _spark(image, p["centre"], p["lengths"], int(p["rays"]), p["exponent"])
    return _cut(255 + star * (image - 255.0))


def _perlin(p, u, v):
    i, j = np.floor(u).astype(int), np.floor(v).astype(int)
    ru, rv = u - i, v - j
    total = 0.0
    for a in (0, 1):
        for b in (0, 1):
            order = p["permutation"]
            g = p["gradients"][order[(order[(i + a) % 256] + (j + b) % 256) % 256]]
            dot = g[..., 0] * (ru - a) + g[..., 1] * (rv - b)
            total = total + dot * (_smoothstep(ru) if a else 1 - _smoothstep(ru)) * (
                _smoothstep(rv) if b else 1 - _smoothstep(rv)
            )
    return 1.5 * total


def perlin_noise(image, p):
    y, x = grid(image)
    k = 7 / min(image.shape[:2])
    turbulence = sum(np.abs(_perlin(p, f * k * y, f * k * x)) / f for f in (1, 2, 4, 8, 16))
    cloud = np.clip(0.5 * turbulence + 0.5, 0, 1)
    return _cut((1 - p["weight"]) * image + (255 * p["weight"] * cloud)[..., None])


def spectral_field(phases, shape, amplitude):
    """Sides are even here. In the square case d is the distance in pixels of the spectrum."""
    height, width = shape[:2]
    y, x = np.mgrid[:height, :width]
    side = min(height, width)
    distance = np.hypot((y - height / 2) * side / height, (x - width / 2) * side / width)
    phase = np.concatenate([phases, np.rot90(phases, 2)], axis=1)
    spectrum = amplitude(distance) * np.exp(1j * phase)
    field = np.fft.ifft2(np.roll(spectrum, (height // 2, width // 2), (0, 1))).real
    return field / field.std()


def _blue(d):
    return d


def _brown(d):
    return 1 / (d**2 + 1)


def blue_noise(image, p, amplitude=_blue):
    fields = [spectral_field(phases, image.shape, amplitude) for phases in p["phases"].astype(np.float64)]
    return _cut(image + p["amplitude"] * np.stack(fields, -1))


def brownish_noise(image, p):
    return blue_noise(image, p, _brown)


def blue_noise_sample(image, p):
    field = spectral_field(p["phases"].astype(np.float64), image.shape, _blue)
    return np.where((field > p["threshold"])[..., None], image, 0)


def checkerboard_cutout(image, p):
    y, x = grid(image)
    angle, square = p["angle"], p["square"]
    m = (np.cos(angle) * y + np.sin(angle) * x) / square
    n = (-np.sin(angle) * y + np.cos(angle) * x) / square
    same = np.floor(m) % 2 == np.floor(n) % 2
    cut = same & p["cut"][np.trunc(m).astype(int), np.trunc(n).astype(int)]
    return np.where(cut[..., None], 128, image)


def lines(image, p):
    """Coverage by distance along the normal; one line after the other, 8 bits in between."""
    y, x = grid(image)
    levels = image.astype(np.float64)
    for r0, c0, r1, c1 in p["ends"][: int(p["count"])].astype(np.float64):
        length = np.hypot(r1 - r0, c1 - c0)
        distance = np.abs((x - c0) * (r1 - r0) - (y - r0) * (c1 - c0)) / length
        box = (y >= min(r0, r1)) & (y <= max(r0, r1)) & (x >= min(c0, c1)) & (x <= max(c0, c1))
        v = np.where(box, np.maximum(0, 1 - distance), 0)[..., None]
        levels = np.trunc((1 - v) * levels + 128 * v)
    return levels.astype(np.uint8)


def bleach_bypass(image, p):
    luma = _luma(image)[..., None]
    light = np.clip(10 * (luma - 0.45), 0, 1)
    doubled = image.astype(int) * 2
    if p["wrap"]:
        doubled = doubled % 256
    out = 255 * ((1 - light) * doubled * luma / 255 + light * (1 - 2 * (1 - luma) * (1 - image / 255)))
    return (_wrapped if p["wrap"] else _cut)((1 - p["weight"]) * image + p["weight"] * out)


def technicolor(image, p):
    red, green, blue = np.moveaxis(image / 255, -1, 0)
    mr, mg, mb = 1 - red + (green + blue) / 2, 1 - green + (red + blue) / 2, 1 - blue + (red + green) / 2
    new = 255 * np.stack([mg * mb * red, mr * mb * green, mr * mg * blue], -1)
    return (_wrapped if p["wrap"] else _cut)((1 - p["weight"]) * image + p["weight"] * new)


def pseudocolor(image, p):
    luma, colors = _luma(image), p["colors"].astype(int)
    k = np.minimum(np.floor(4 * luma), 3).astype(int)
    t = (4 * (luma - k / 4))[..., None]
    linear = (1 - t) * colors[k] + t * colors[k + 1]
    step = colors[k + 1] - colors[k]
    smooth = colors[k] + (step % 256 if p["wrap"] else step) * _smoothstep(t)
    color = (1 - p["smooth"]) * linear + p["smooth"] * smooth
    return _cut((1 - p["weight"]) * image + p["weight"] * color)


def hue_shift(image, p):
    hsv = colors.rgb_to_hsv(image / 255)
    hsv[..., 0] = (hsv[..., 0] + p["turns"]) % 1
    return _cut(255 * colors.hsv_to_rgb(hsv))


def color_balance(image, p):
    return np.asarray(ImageEnhance.Color(Image.fromarray(image)).enhance(float(p["factor"])))


def color_dither(image, p):
    n = int(p["levels"])
    palette = [int(255 * i / (n - 1)) for i in range(n)]
    out = image.astype(int)
    for y in range(image.shape[0]):
        for channel in range(3):
            for x in range(image.shape[1]):
                old = out[y, x, channel]
                new = palette[int(np.floor(n * old / 256))]
                out[y, x, channel] = new
                if x + 1 < image.shape[1]:
                    right = out[y, x + 1, channel]
                    if y > 0:
                        right = int(min(255, max(0, right + 7 * (old - new) / 16)))
                    if y + 1 < image.shape[0]:
                        right = int(min(255, max(0, right + (old - new) / 16)))
                    out[y, x + 1, channel] = right
    return out.astype(np.uint8)
