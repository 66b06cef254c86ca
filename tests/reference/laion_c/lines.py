"""vertical_lines with Pillow's own lines, cell by cell, in NumPy's float64."""

import numpy as np
import PIL.Image
import PIL.ImageDraw

ROWS = ((224, 1), (178, 2), (112, 4), (84, 6), (60, 8))


def reference(image, params, severity):
    del params
    height, width, _ = image.shape
    lines, step = (round(n * width / 224) for n in ROWS[severity - 1])
    step = max(step, 1)
    canvas = PIL.Image.new("RGB", (width, height))
    draw = PIL.ImageDraw.Draw(canvas)
    luma = np.asarray(PIL.Image.fromarray(image).convert("L"))
    for i in range(lines):
        x = i / lines * width
        columns = slice(int(x), min(int(x + width / lines), width))
        pen = (x, 0)
        for y in range(0, height, step):
            cell, grey = image[y : y + step, columns], luma[y : y + step, columns]
            color = tuple(int(np.sum(cell[..., c], dtype=np.int64)) // max(grey.size, 1) for c in range(3))
            level = int(np.sum(grey, dtype=np.int64)) // max(grey.size, 1)
            point = (x - 40 * width / 224 * (1 - level / 255), y)
            draw.line([pen, point], fill=color)
            pen = point
    return np.asarray(canvas)
