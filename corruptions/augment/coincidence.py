"""Which operations of the schemes are, but for their strength, corruptions of the benchmarks.

To train with one of them and test on the other measures no generalisation; AugMix leaves color,
contrast, brightness and sharpness out of its operations for this reason.
"""

from collections.abc import Iterable

from corruptions import registry
from corruptions.augment import naming

COINCIDES_WITH = {
    "autocontrast": (),
    "equalize": (),
    "posterize": ("noc/quantization",),
    "solarize": (),
    "shear_x": ("noc/shear",),
    "shear_y": ("noc/shear",),
    "translate_x": ("noc/translation",),
    "translate_y": ("noc/translation",),
    "rotate": ("noc/rotation",),
    "invert": (),
    "color": ("imagenet_c/saturate", "noc/gray_scale", "cbar/color_balance"),
    "contrast": ("imagenet_c/contrast", "noc/contrast"),
    "brightness": ("imagenet_c/brightness", "noc/brightness"),
    "sharpness": ("imagenet_c/gaussian_blur", "noc/blur"),
    "patch_gaussian": ("imagenet_c/gaussian_noise", "noc/gaussian"),
}
"""operation -> qualified names of corruptions. Sharpness blurs at factors below 1;
`cbar/color_balance` is `color`.
"""


def coinciding(scheme_name: str, corruption_names: Iterable[str]) -> list[tuple[str, str]]:
    """Lists the pairs (operation of the scheme, corruption) that are the same transform.

    Args:
      scheme_name: see `naming`.
      corruption_names: names of corruptions, any spelling that `corruptions.get` knows.

    Returns:
      List of (operation, qualified name), in the order of the scheme's operations and then of the
      corruptions.

    Raises:
      ValueError: an unknown scheme or corruption.
    """
    qualified = [registry.get(name).qualified_name for name in corruption_names]
    operations = naming.get(scheme_name).operations
    return [(operation, name) for operation in operations for name in qualified if name in COINCIDES_WITH[operation]]
