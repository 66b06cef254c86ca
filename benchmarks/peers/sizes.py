"""One library on images of many sizes, in a process that imports nothing else; the pictures of both.

PYTHON benchmarks/peers/sizes.py ours|first|imagecorruptions NUMBER LOW HIGH
"""

import sys
import warnings

import numpy as np


def pictures(number, low, high):
    """Draws mosaics, uint8 [H, W, 3], with sides uniform in low..high, one after another: costs do
    not depend on content.
    """
    rng = np.random.default_rng(0)
    for height, width in rng.integers(low, high + 1, (number, 2)):
        tiles = rng.integers(0, 256, (8, 8, 3), np.uint8)
        yield tiles.repeat(-(-height // 8), 0).repeat(-(-width // 8), 1)[:height, :width]


def main():
    library, *given = sys.argv[1:]
    if library in ("ours", "first"):
        return ours(*map(int, given), first=library == "first")
    from imagecorruptions import corrupt, get_corruption_names

    warnings.simplefilter("ignore")
    for name in get_corruption_names("common"):
        for image in pictures(*map(int, given)):
            corrupt(image, corruption_name=name, severity=3)


def ours(*given, first):
    import jax

    import corruptions

    if first:
        (image,) = pictures(*given)
        for name in corruptions.names("imagenet_c"):
            jax.block_until_ready(corruptions.corrupt(jax.random.key(0), image[None], name, 3))
        return
    for name in corruptions.names("imagenet_c"):
        for _ in corruptions.corrupt_each(jax.random.key(0), pictures(*given), name, 3):
            pass


if __name__ == "__main__":
    main()
