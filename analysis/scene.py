"""A procedural photograph for galleries: evening light over hills, a barn, a tree, a fence and a sign with letters.

Corruptions change different things, and the picture has all of them: smooth gradients (sky), fine texture (grass, leaves, planks),
straight and curved edges, saturated and grey colours, shadow and highlight, and small letters.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

_OVERSAMPLING = 3


def scene(size: int = 224, seed: int = 0) -> np.ndarray:
    """Draws the photograph, uint8 [size, size, 3], the same for the same seed."""
    rng = np.random.default_rng(seed)
    side = size * _OVERSAMPLING
    y, x = np.mgrid[0:side, 0:side] / side
    picture = _sky(x, y, rng)
    for ridge in range(3):
        picture = _hill(picture, x, y, ridge, rng)
    picture = _meadow(picture, x, y, rng)
    picture = _barn(picture, rng)
    picture = _tree(picture, x, y, rng)
    picture = _fence(picture)
    picture = _sign(picture)
    light = 1.06 - 0.35 * ((x - 0.45) ** 2 + (y - 0.45) ** 2)  # vignette
    levels = np.uint8(np.clip(255 * picture * light[..., None], 0, 255))
    return np.asarray(Image.fromarray(levels).resize((size, size), Image.LANCZOS))


def fractal(rng: np.random.Generator, y: np.ndarray, x: np.ndarray, octaves: int, falloff: float = 0.55) -> np.ndarray:
    """Draws smooth noise of roughly unit range at the points (y, x); octave k has 2^k cells per unit."""
    total, amplitude = np.zeros(np.broadcast(y, x).shape), 1.0
    for k in range(octaves):
        grid = rng.uniform(-1, 1, (64, 64))
        fy, fx = np.asarray(y) * 2**k, np.asarray(x) * 2**k
        iy, ix = np.floor(fy).astype(int), np.floor(fx).astype(int)
        ty, tx = ((f - i) ** 2 * (3 - 2 * (f - i)) for f, i in ((fy, iy), (fx, ix)))
        corner = [[grid[(iy + a) % 64, (ix + b) % 64] for b in (0, 1)] for a in (0, 1)]
        rows = [low + tx * (high - low) for low, high in corner]
        total += amplitude * (rows[0] + ty * (rows[1] - rows[0]))
        amplitude *= falloff
    return total * (1 - falloff)


def _blend(picture, color, cover):
    return picture + np.asarray(cover)[..., None] * (np.asarray(color, float) - picture)


def _rgb(*levels):
    return np.array(levels) / 255


def _sky(x, y, rng):
    height = np.clip(y / 0.55, 0, 1)[..., None]
    picture = (1 - height) * _rgb(62, 118, 190) + height * _rgb(250, 214, 170)
    sun = np.exp(-((x - 0.78) ** 2 + (y - 0.3) ** 2) / 0.02)
    picture = _blend(picture, _rgb(255, 236, 190), 0.6 * sun)
    picture = _blend(picture, _rgb(255, 250, 225), np.hypot(x - 0.78, y - 0.3) < 0.035)
    clouds = fractal(rng, 9 * y, 3 * x, 6)
    return _blend(picture, _rgb(255, 246, 238), np.clip(1.6 * clouds - 0.1, 0, 0.85) * (y < 0.5))


def _hill(picture, x, y, ridge, rng):
    top = 0.4 + 0.07 * ridge + 0.09 * fractal(rng, np.full_like(x, 7.3 * ridge), 2.5 * x + ridge, 6, 0.5)
    far, near = _rgb(134, 150, 184), _rgb(58, 88, 62)
    shade = 1 + 0.25 * fractal(rng, 30 * y, 20 * x, 4)
    color = (far + (near - far) * ridge / 2) * shade[..., None]
    return _blend(picture, color, y > top)


def _meadow(picture, x, y, rng):
    horizon = 0.6
    depth = 1 / np.maximum(y - horizon + 0.06, 0.03)  # perspective: detail gets finer towards the horizon
    grass = fractal(rng, 9 * depth, 3 * (x - 0.5) * depth, 5, 0.8) + 0.5 * fractal(rng, 40 * y, 160 * x, 3)
    color = (
        _rgb(104, 136, 52) * (1 + 0.45 * grass)[..., None] + _rgb(70, 40, 0) * np.clip(1 - depth / 12, 0, 1)[..., None]
    )
    picture = _blend(picture, color, y > horizon + 0.012 * np.sin(7 * x))
    path = abs(x - 0.5 - 0.55 * (y - horizon) ** 2 + 0.1) < 0.015 + 0.32 * (y - horizon)
    earth = _rgb(190, 160, 118) * (1 + 0.2 * grass)[..., None]
    return _blend(picture, earth, 0.85 * (path & (y > horizon + 0.012)))


def _drawn(picture):
    image = Image.fromarray(np.uint8(np.clip(255 * picture, 0, 255)))
    return image, ImageDraw.Draw(image), picture.shape[0]


def _barn(picture, rng):
    image, draw, side = _drawn(picture)

    def points(*pairs):
        return [(side * u, side * v) for u, v in pairs]

    draw.polygon(points((0.08, 0.74), (0.46, 0.74), (0.56, 0.79), (0.14, 0.79)), (58, 66, 34))  # shadow
    draw.polygon(points((0.1, 0.76), (0.1, 0.52), (0.28, 0.52), (0.28, 0.76)), (166, 42, 34))
    draw.polygon(points((0.28, 0.76), (0.28, 0.52), (0.36, 0.4), (0.44, 0.52), (0.44, 0.76)), (198, 58, 44))
    for k in range(26):  # planks
        u = 0.1 + 0.34 * k / 26
        draw.line(points((u, 0.53), (u, 0.76)), tuple(int(c) for c in rng.integers((120, 26, 20), (160, 44, 36))), 2)
    draw.polygon(points((0.07, 0.53), (0.15, 0.4), (0.36, 0.4), (0.28, 0.53)), (84, 88, 100))
    for k in range(7):  # rows of shingles
        u, v = 0.07 + 0.08 * k / 7, 0.53 - 0.13 * k / 7
        draw.line(points((u, v), (u + 0.21, v)), (60, 62, 74), 2)
    draw.line(points((0.27, 0.535), (0.36, 0.4), (0.45, 0.535)), (240, 236, 226), 6)
    draw.rectangle(points((0.325, 0.62), (0.395, 0.76)), (88, 30, 26), (240, 236, 226), 4)
    draw.line(points((0.325, 0.62), (0.395, 0.76)), (240, 236, 226), 4)
    draw.line(points((0.395, 0.62), (0.325, 0.76)), (240, 236, 226), 4)
    for u in (0.13, 0.2):
        draw.rectangle(points((u, 0.59), (u + 0.045, 0.66)), (48, 60, 92), (240, 236, 226), 4)
        draw.line(points((u + 0.0225, 0.59), (u + 0.0225, 0.66)), (240, 236, 226), 3)
        draw.line(points((u, 0.625), (u + 0.045, 0.625)), (240, 236, 226), 3)
    draw.ellipse(points((0.335, 0.49), (0.385, 0.54)), (30, 26, 30), (240, 236, 226), 4)
    return np.asarray(image) / 255


def _tree(picture, x, y, rng):
    picture = _blend(picture, _rgb(52, 62, 30), (((x - 0.8) / 0.2) ** 2 + ((y - 0.8) / 0.025) ** 2 < 1) * 0.8)
    trunk = abs(x - 0.76 - 0.01 * np.sin(14 * y)) < 0.018 + 0.02 * np.clip(y - 0.72, 0, 1)
    bark = _rgb(92, 66, 44) * (1 + 0.4 * fractal(rng, 10 * y, 90 * x, 3))[..., None]
    picture = _blend(picture, bark, trunk & (y > 0.55) & (y < 0.8))
    crown = np.hypot((x - 0.76) / 0.17, (y - 0.47) / 0.2) + 0.22 * fractal(rng, 14 * y, 14 * x, 4)
    leaves = 0.62 + 0.5 * fractal(rng, 30 * y, 30 * x, 4, 0.8) + 0.9 * (x - y - 0.26)
    color = np.clip(leaves, 0.15, 1.3)[..., None] * _rgb(92, 148, 48)
    return _blend(picture, color, crown < 0.95)


def _fence(picture):
    image, draw, side = _drawn(picture)
    for v in (0.86, 0.91):
        draw.line([(0, side * (v + 0.01)), (side, side * (v - 0.01))], (232, 226, 214), side // 90)
    for k in range(12):
        u = side * (0.02 + 0.088 * k)
        draw.rectangle([u, side * 0.835, u + side / 55, side * 0.965], (246, 242, 232), (150, 140, 124))
    return np.asarray(image) / 255


def _sign(picture):
    image, draw, side = _drawn(picture)
    draw.rectangle([side * 0.565, side * 0.72, side * 0.58, side * 0.9], (96, 84, 72))
    draw.rectangle([side * 0.48, side * 0.64, side * 0.665, side * 0.755], (250, 204, 30), (34, 34, 34), side // 110)
    for line, text in enumerate(("FARM", "2.4 km")):
        font = ImageFont.load_default(side * (0.058 if line == 0 else 0.04))
        draw.text((side * 0.5725, side * (0.675 + 0.047 * line)), text, (20, 20, 20), font, anchor="mm")
    return np.asarray(image.filter(ImageFilter.GaussianBlur(0.6))) / 255
