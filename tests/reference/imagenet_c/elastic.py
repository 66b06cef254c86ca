"""Elastic transform of ImageNet-C in float64: fixed-point warp, then the displacement of SciPy below 1.6."""

import numpy as np
from scipy import ndimage

# Alpha, sigma and affine jitter in pixels, severities 1 to 5.
PIXELS = {
    "cifar": [(0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)],
    "tiny": [(0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)],
    "imagenet": [(488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88), (29.28, 2.44, 4.88)],
    "inception": [(720, 252, 36), (720, 28.8, 72), (18, 3.6, 7.2), (25.2, 3.6, 7.2), (43.2, 3.6, 7.2)],
}


def reference_anchors(height, width):
    centre, side = np.array([width // 2, height // 2]), min(height, width) // 3
    return np.array([centre + side, [centre[0] + side, centre[1] - side], centre - side], np.float64)


def reference_coordinates(points, height, width):
    """OpenCV's fixed point in float64: source (y, x) in 1/32 px."""
    anchors = reference_anchors(height, width)
    inverse = np.linalg.solve(np.column_stack([points.astype(np.float64), np.ones(3)]), anchors).T
    x, y = np.arange(width), np.arange(height)[:, None]
    x_32, y_32 = (
        (np.rint(1024 * (b * y + c)).astype(int) + 16 + np.rint(1024 * a * x).astype(int)) >> 5 for a, b, c in inverse
    )
    return y_32, x_32


def folded(places, size):
    """Where in 0..size-1 SciPy below 1.6 looks an axis up at real places, with mode="reflect" and order 1."""
    below = np.where(places < -2 * size, places + 2 * size * np.trunc(-places / (2 * size)), places)
    below = np.where(below < -size, below + 2 * size, -1 - below)
    above = places - 2 * size * np.trunc(places / (2 * size))
    above = np.where(above >= size, 2 * size - 1 - above, above)
    inside = np.abs(np.where(places < 0, below, np.where(places > size - 1, above, places)))
    return np.where(inside > size - 1, 2 * (size - 1) - inside, inside)


def reference(image, points, dx, dy):
    """Levels before truncation, in float64."""
    height, width, _ = image.shape
    y, x = reference_coordinates(points, height, width)
    rows, columns = np.mgrid[:height, :width]
    displaced = folded(rows + dy, height), folded(columns + dx, width)
    planes = []
    for plane in np.moveaxis(image / 255.0, -1, 0):
        plane = ndimage.map_coordinates(plane, (y / 32, x / 32), order=1, mode="mirror")
        planes.append(ndimage.map_coordinates(plane, displaced, order=1))
    return 255 * np.clip(np.stack(planes, -1), 0, 1)
