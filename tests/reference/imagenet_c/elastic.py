"""Elastic transform of ImageNet-C in float64: fixed-point warp, then SciPy's displacement."""

import numpy as np
from scipy import ndimage


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


def reference(image, points, dx, dy):
    """Levels before truncation, in float64."""
    height, width, _ = image.shape
    y, x = reference_coordinates(points, height, width)
    rows, columns = np.mgrid[:height, :width]
    planes = []
    for plane in np.moveaxis(image / 255.0, -1, 0):
        plane = ndimage.map_coordinates(plane, (y / 32, x / 32), order=1, mode="mirror")
        planes.append(ndimage.map_coordinates(plane, (rows + dy, columns + dx), order=1, mode="reflect"))
    return 255 * np.clip(np.stack(planes, -1), 0, 1)
