"""What the ImageNet-C corruptions share: five severities, truncation to 8 bits, the source."""

from corruptions import registry
from corruptions.contract import Levels

member = registry.registrar(
    "imagenet_c", Levels(5), "truncate", "Hendrycks & Dietterich (2019), appendix B and released code"
)
