"""The warps of C-bar in NumPy and float64, as their definitions read: 8-bit image and draws in, 8-bit image out."""

import numpy as np
from scipy import ndimage

from tests.reference.cbar.definitions import caustic, grid


def _cut(unit):
    return np.clip(255 * unit, 0, 255).astype(np.uint8)


def bil0(image, y, x):
    """Bilinear in float64, 0 outside the image."""
    return _looked_up(image, y, x, "grid-constant")


def pillow_bilinear(image, x, y):
    """Whole levels at positions from the corner of the image, the border repeated; -1 outside the image."""
    inside = (x >= 0) & (x < image.shape[1]) & (y >= 0) & (y < image.shape[0])
    levels = np.floor(_looked_up(image, y - 0.5, x - 0.5, "nearest") + 1e-9)  # equal levels stay
    return np.where(inside[..., None], levels.astype(int), -1)


def _looked_up(image, y, x, mode):
    planes = np.moveaxis(image, -1, 0)
    return np.stack([ndimage.map_coordinates(c, (y, x), np.float64, 1, mode) for c in planes], -1)


def caustic_refraction(image, p):
    surface = caustic(image.shape, p["time"], p["scale"])
    surface = np.pad(ndimage.gaussian_filter(surface, 1, mode="reflect", truncate=4), 1)
    dr, dc = surface[2:, 1:-1] - surface[:-2, 1:-1], surface[1:-1, 2:] - surface[1:-1, :-2]
    nz = 1 / np.sqrt(1 + dr**2 + dc**2)
    theta = np.arccos(nz)
    length = p["lens"] * np.sin(theta - np.arcsin(np.sin(theta) / 4))
    norm = np.maximum(np.hypot(dr, dc), 1e-300)
    sy, sx = (np.where(nz >= 0.999, 0, np.round(length * d / norm, 3)) for d in (dr, dc))
    y, x = grid(image)
    return _cut(np.clip(bil0(image / 255, y + sy, x + sx) + (p["light"] * (dr - dc))[..., None], 0, 1))


def pinch_and_twirl(image, p):
    """Cell after cell, as drawn: columns outside, rows inside."""
    out = image / 255
    cell = min(image.shape[:2]) // min(p["signs"].shape)
    radius = cell / 2
    for j in range(p["signs"].shape[1]):
        for i in range(p["signs"].shape[0]):
            cy, cx = i * cell + radius, j * cell + radius
            y, x = grid(image)
            dist = np.round(np.hypot(y - cy, x - cx), 3)
            y, x = (v[(dist <= radius) & (dist != 0)] for v in (y, x))
            d = np.round(np.hypot(y - cy, x - cx), 3) / radius
            scale = np.sin(np.pi * d / 2) ** -p["exponent"]
            angle = p["signs"][i, j] * p["angle"] * (1 - d) ** 2
            dy = scale * ((y - cy) * np.cos(angle) - (x - cx) * np.sin(angle))
            dx = scale * ((y - cy) * np.sin(angle) + (x - cx) * np.cos(angle))
            out[y.astype(int), x.astype(int)] = bil0(image / 255, cy + dy, cx + dx)
    return _cut(out)


def fish_eye(image, p):
    """Lens after lens, each on the float32 image that the ones before have left."""
    current = image.astype(np.float32) / 255
    height, width, _ = image.shape
    radius = max(0.05 * min(height, width), 3)

    def moved(d, h):
        alpha = np.arctan2(d, h)
        return h * np.tan(alpha - np.arcsin(np.sin(alpha) / p["index"]))

    for cy, cx in p["centres"]:
        y, x = np.mgrid[
            max(0, int(cy - radius)) : min(height, int(cy + radius) + 2),
            max(0, int(cx - radius)) : min(width, int(cx + radius) + 2),
        ]
        inside = (y - cy) ** 2 + (x - cx) ** 2 < radius**2
        y, x = y[inside], x[inside]
        h = np.sqrt(radius**2 - (y - cy) ** 2 - (x - cx) ** 2)
        current[y, x] = bil0(current, y - moved(y - cy, h), x - moved(x - cx, h)).astype(np.float32)
    return _cut(current.astype(np.float64))


def water_drop(image, p):
    y, x = grid(image)
    cy, cx = p["centre"]
    dist = np.hypot(y - cy, x - cx)
    dist[dist == 0] = np.inf
    factor = 1 + p["amplitude"] * np.sin(2 * np.pi * dist / p["wavelength"] - p["phase"]) * p["wavelength"] / dist
    factor = np.where(dist <= min(image.shape[:2]) // 2, factor, 1)
    return _cut(bil0(image / 255, cy + factor * (y - cy), cx + factor * (x - cx)))


def ripple(image, p):
    y, x = grid(image)
    (wavelength_y, wavelength_x), (phase_y, phase_x) = p["wavelengths"], p["phases"]
    y = y + p["amplitude"] * np.sin(2 * np.pi * y / wavelength_y + phase_y)
    x = x + p["amplitude"] * np.sin(2 * np.pi * x / wavelength_x + phase_x)
    return _cut(bil0(image / 255, y, x))


def scatter(image, p):
    def h(u, v):
        return np.mod(43758.5453 * np.sin(12.9898 * np.sin(p["seed"] * u) + 78.233 * np.cos(p["seed"] * v)), 1)

    y, x = grid(image)
    moved_y = np.clip(y + p["reach"] * (2 * h(y, x) - 1), 0, image.shape[0] - 1)
    moved_x = np.clip(x + p["reach"] * (2 * h(x, y) - 1), 0, image.shape[1] - 1)
    return _cut(bil0(image / 255, moved_y, moved_x))


def perspective_no_bars(image, p):
    y, x = grid(image) + np.array(0.5)
    (ox, oy), (tx, ty), (fx, fy) = p["shears"], p["shifts"], p["scales"]
    below = p["tilt"] * x + p["tilt"] * y + 1
    seen = pillow_bilinear(image, (fx * x + ox * y + tx) / below, (oy * x + fy * y + ty) / below)
    return np.where(seen < 0, image, seen)


def quadrilateral_no_bars(image, p):
    y, x = grid(image) + np.array(0.5)
    y, x = (y / image.shape[0])[..., None], (x / image.shape[1])[..., None]
    nw, sw, se, ne = p["corners"]
    source = (1 - x) * (1 - y) * nw + (1 - x) * y * sw + x * y * se + x * (1 - y) * ne
    seen = pillow_bilinear(image, source[..., 0], source[..., 1])
    return np.where(seen < 0, image, seen)
