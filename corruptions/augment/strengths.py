"""How strong an operation of AugMix is: its level, and what the level means."""

import jax
import jax.numpy as jnp

from corruptions.augment.operations import CODES

LEAST_LEVEL = 0.1
GREATEST_SEVERITY = 10.0


def check_severity(severity: float) -> None:
    """Raises ValueError unless 0.1 < severity <= 10, where all operations are defined."""
    if not LEAST_LEVEL < severity <= GREATEST_SEVERITY:
        raise ValueError(f"expected a severity above {LEAST_LEVEL} and up to {GREATEST_SEVERITY:g}, found {severity!r}")


def level(uniform: jax.Array, severity: float) -> jax.Array:
    """Turns a number ~ U[0, 1) into a level ~ U[0.1, severity)."""
    return LEAST_LEVEL + (severity - LEAST_LEVEL) * uniform


def strength(code: jax.Array, level: jax.Array, sign: jax.Array, shape: tuple[int, ...], whole: bool) -> jax.Array:
    """Computes the strength of an operation at a level (Mintun et al., 2021; Hendrycks et al.,
    2020).

    With l the level: rotate +-3 l degrees, shear +-0.03 l, translate +-l / 30 of the image's width
    or height (pixels), posterize 4 - floor(0.4 l) bits, solarize threshold 256 - floor(25.6 l);
    autocontrast and equalize have none (0).

    Args:
      code: int32, `operations.CODES`, any shape.
      level: float32, of the same shape.
      sign: float32 -1 or 1, likewise; used by the geometric operations.
      shape: (H, W, 3) of the images.
      whole: whether degrees and pixels are truncated to whole numbers, as for ImageNet.

    Returns:
      float32, of the same shape.
    """
    height, width = shape[:2]
    cut = jnp.trunc if whole else lambda x: x
    values = {
        "posterize": jnp.maximum(4 - jnp.floor(0.4 * level), 1.0),
        "solarize": 256 - jnp.floor(25.6 * level),
        "shear_x": sign * 0.03 * level,
        "shear_y": sign * 0.03 * level,
        "translate_x": sign * cut(level * (width / 30)),
        "translate_y": sign * cut(level * (height / 30)),
        "rotate": sign * cut(3 * level),
    }
    return jnp.select([code == CODES[name] for name in values], list(values.values()), 0.0)
