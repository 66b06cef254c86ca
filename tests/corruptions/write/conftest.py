"""Images that the tests of written datasets share."""

import numpy as np
import pytest
from PIL import Image

from tests.corruptions.write.datasets import NUMBER


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (NUMBER, 5, 6, 3), dtype=np.uint8)
    images = [Image.fromarray(image).resize((24, 20), Image.Resampling.BICUBIC) for image in coarse]
    return np.stack([np.asarray(image) for image in images]), rng.integers(0, 4, NUMBER)
