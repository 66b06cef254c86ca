"""Fog, snow and spatter against feature figures of the original ImageNet-C code (needs
JAXC_SHARED).
"""

import pytest

from corruptions.imagenet_c.fog import fog
from corruptions.imagenet_c.snow import snow
from corruptions.imagenet_c.spatter import spatter
from tests.corruptions import goldens


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("corruption", [fog, snow, spatter], ids=lambda c: c.name)
def test_features(shared, corruption, size):
    goldens.assert_features(shared, corruption, size)
