"""What the ImageNet-C corruptions share: five severities, truncation to 8 bits, the source, the
table of an image's own size.
"""

import functools

from corruptions import registry
from corruptions.imagenet_c import tables
from corruptions.levels import Levels
from corruptions.padded import Padding

member = registry.registrar(
    "imagenet_c", Levels(5), "truncate", "Hendrycks & Dietterich (2019), appendix B and released code"
)
padding = functools.partial(Padding, tables.of_program)
