"""LAION-C: six corruptions that are far from the web images of training sets, five severities each.

F. Li et al., "LAION-C: An Out-of-Distribution Benchmark for Web-Scale Vision Models" (ICML 2025). Parameters are of the released
code, for 224x224 images, and scale with the side. The release stores its images as JPEG of quality 100; here they are not
stored. Its own pixels cannot be made again, apart from glitched and vertical_lines: it draws without a seed.
"""

from corruptions.core.registry import register_benchmark
from corruptions.laion_c.banks import use_bank, used_banks
from corruptions.laion_c.geometric_shapes import geometric_shapes
from corruptions.laion_c.glitched import glitched
from corruptions.laion_c.luminance_checkerboard import luminance_checkerboard
from corruptions.laion_c.superclasses import SUPERCLASSES, superclass_labels, superclass_scores
from corruptions.laion_c.tiles import TABLES, mosaic, stickers
from corruptions.laion_c.vertical_lines import vertical_lines

_PUBLISHED = ("mosaic", "glitched", "vertical_lines", "geometric_shapes", "stickers", "luminance_checkerboard")
register_benchmark("laion_c", [f"laion_c/{name}" for name in _PUBLISHED])

__all__ = [
    "SUPERCLASSES", "TABLES", "geometric_shapes", "glitched", "luminance_checkerboard", "mosaic", "stickers",
    "superclass_labels", "superclass_scores", "use_bank", "used_banks", "vertical_lines",
]  # fmt: skip
