"""geometric_shapes with Pillow's own shapes, one after another.

The canvas is larger than the image: Pillow rounds vertices towards zero, which is down for all vertices of the image only
where none is negative.
"""

import numpy as np
import PIL.Image
import PIL.ImageDraw

COUNTS = (150, 300, 600, 800, 1000)
MARGIN = 64


def reference(image, params, severity):
    height, width, _ = image.shape
    assert params["count"] == round(COUNTS[severity - 1] * height * width / min(height, width) ** 2)
    canvas = PIL.Image.fromarray(np.pad(image, ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0))))
    draw = PIL.ImageDraw.Draw(canvas)
    for k in range(int(params["count"])):
        x, y = int(params["column"][k]) + MARGIN, int(params["row"][k]) + MARGIN
        size = max(1, round((7 + int(params["size"][k])) * min(height, width) / 224)) - 1
        paint(draw, int(params["kind"][k]), x, y, size, int(params["rotation"][k]), tuple(map(int, params["color"][k])))
    return np.asarray(canvas)[MARGIN:-MARGIN, MARGIN:-MARGIN]


def paint(draw, kind, x, y, size, rotation, color):
    box = [x, y, x + size, y + size]
    if kind == 0:
        draw.polygon([(x, y), (x + size, y), (x + size / 2, y + size)], fill=color)
    elif kind == 1 or (kind == 3 and size == 0):  # Pillow has no ellipse of one pixel
        draw.rectangle(box, fill=color)
    elif kind == 3:
        draw.ellipse(box, fill=color)
    else:
        points = []
        for i in range(10):
            radius, angle = size / 1.2 * (1 if i % 2 == 0 else 0.5), np.radians(36 * i + rotation)
            # A vertex on a whole pixel, which float64 puts on either side of it.
            points.append((x + radius * np.sin(angle) + 1e-9, y + radius * np.cos(angle) + 1e-9))
        draw.polygon(points, fill=color)
