"""Tiles for LAION-C's mosaic and stickers: the first 1,000 training images of CIFAR-10 (`TFDS_DATA_DIR` names the folder).

configs/coverage.py imports this module; the digest of the tiles is part of the answers' origin. Without the images there
are no tiles: tables follow from answers alone, and a study is refused when it needs the first tile.
"""

import data
from corruptions import laion_c
from runtime.log import log

try:
    laion_c.use_bank(data.load("cifar10").train.images[:1000])
except FileNotFoundError as error:
    log.warning("LAION-C's mosaic and stickers have no tiles: %s", str(error).partition(" (")[0])
