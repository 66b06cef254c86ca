"""What the ImageNet-NOC candidates share: a severity range, rounding to nearest, the source."""

from corruptions import registry
from corruptions.scales import Fraction

candidate = registry.registrar("noc", Fraction(), "nearest", "ImageNet-NOC (2021), appendix A, and the released code")
