"""Tiles for LAION-C's mosaic and stickers: the first 1,000 training images of CIFAR-10 (`TFDS_DATA_DIR` names the folder).

configs/coverage.py imports this module; the digest of the tiles is part of the answers' origin.
"""

import data
from corruptions import laion_c

laion_c.use_bank(data.load("cifar10").train.images[:1000])
