"""AlexNet's errors on ImageNet-C, and errors that are the same at each severity."""

from analysis import references
from tests.analysis.published import IMAGENET_C

LEVELS = (1, 2, 3, 4, 5)
ALEXNET = references.ALEXNET_IMAGENET_C
EXTRAS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")


def flat(means):
    """Errors with the same value at each of five severities: CE sees only their sum."""
    return {name: [float(value)] * 5 for name, value in zip(IMAGENET_C, means, strict=True)}
