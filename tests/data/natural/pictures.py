"""Generated folders of natural test sets, for the tests."""

import numpy as np
from PIL import Image


def picture(path, shade, side=8, border=None):
    """A grey picture of one shade, with a border of 2 pixels in another colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((side, side, 3), shade, np.uint8)
    if border is not None:
        pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:] = [border] * 4
    Image.fromarray(pixels).save(path)


def tree(root, folders, **options):
    """One picture a folder, its shade the folder's number modulo 250."""
    for number, name in enumerate(folders):
        picture(root / name / "one.png", number % 250, **options)
    return root
