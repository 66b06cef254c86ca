"""The peer of benchmarks/many_sizes.py in its own Python, and the pictures of both."""

import sys
import warnings

import numpy as np


def pictures(number, low, high):
    """Draws mosaics, uint8 [H, W, 3], with sides uniform in low..high: costs do not depend on
    content.
    """
    rng = np.random.default_rng(0)
    found = []
    for height, width in rng.integers(low, high + 1, (number, 2)):
        tiles = rng.integers(0, 256, (8, 8, 3))
        found.append(np.kron(tiles, np.ones((-(-height // 8), -(-width // 8), 1)))[:height, :width].astype(np.uint8))
    return found


def main():
    from imagecorruptions import corrupt, get_corruption_names

    warnings.simplefilter("ignore")
    images = pictures(*map(int, sys.argv[1:4]))
    for name in get_corruption_names("common"):
        for image in images:
            corrupt(image, corruption_name=name, severity=3)


if __name__ == "__main__":
    main()
