"""AutoAugment: one of 25 fixed pairs of operations, each with its probability; without Cutout.

E. D. Cubuk et al., "AutoAugment: Learning Augmentation Strategies from Data", CVPR 2019; policies and strengths as
trained by Mintun et al. (2021).
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.augment.operations import CODES, IDENTITY, chain, pack, unpack
from corruptions.core.checks import one_of
from corruptions.core.corruption import Params
from corruptions.primitives import random

# (operation, probability, magnitude 0..10) twice; None where the operation has no strength.
POLICIES = {
    "cifar": (
        (("invert", 0.1, None), ("contrast", 0.2, 6)),
        (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
        (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
        (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
        (("autocontrast", 0.5, None), ("equalize", 0.9, None)),
        (("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
        (("color", 0.4, 3), ("brightness", 0.6, 7)),
        (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
        (("equalize", 0.6, None), ("equalize", 0.5, None)),
        (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
        (("color", 0.7, 7), ("translate_x", 0.5, 8)),
        (("equalize", 0.3, None), ("autocontrast", 0.4, None)),
        (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
        (("brightness", 0.9, 6), ("color", 0.2, 8)),
        (("solarize", 0.5, 2), ("invert", 0.0, None)),
        (("equalize", 0.2, None), ("autocontrast", 0.6, None)),
        (("equalize", 0.2, None), ("equalize", 0.6, None)),
        (("color", 0.9, 9), ("equalize", 0.6, None)),
        (("autocontrast", 0.8, None), ("solarize", 0.2, 8)),
        (("brightness", 0.1, 3), ("color", 0.7, 0)),
        (("solarize", 0.4, 5), ("autocontrast", 0.9, None)),
        (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
        (("autocontrast", 0.9, None), ("solarize", 0.8, 3)),
        (("equalize", 0.8, None), ("invert", 0.1, None)),
        (("translate_y", 0.7, 9), ("autocontrast", 0.9, None)),
    ),
    "imagenet": (
        (("posterize", 0.4, 8), ("rotate", 0.6, 9)),
        (("solarize", 0.6, 5), ("autocontrast", 0.6, None)),
        (("equalize", 0.8, None), ("equalize", 0.6, None)),
        (("posterize", 0.6, 7), ("posterize", 0.6, 6)),
        (("equalize", 0.4, None), ("solarize", 0.2, 4)),
        (("equalize", 0.4, None), ("rotate", 0.8, 8)),
        (("solarize", 0.6, 3), ("equalize", 0.6, None)),
        (("posterize", 0.8, 5), ("equalize", 1.0, None)),
        (("rotate", 0.2, 3), ("solarize", 0.6, 8)),
        (("equalize", 0.6, None), ("posterize", 0.4, 6)),
        (("rotate", 0.8, 8), ("color", 0.4, 0)),
        (("rotate", 0.4, 9), ("equalize", 0.6, None)),
        (("equalize", 0.0, None), ("equalize", 0.8, None)),
        (("invert", 0.6, None), ("equalize", 1.0, None)),
        (("color", 0.6, 4), ("contrast", 1.0, 8)),
        (("rotate", 0.8, 8), ("color", 1.0, 2)),
        (("color", 0.8, 8), ("solarize", 0.8, 7)),
        (("sharpness", 0.4, 7), ("invert", 0.6, None)),
        (("shear_x", 0.6, 5), ("equalize", 1.0, None)),
        (("color", 0.4, 0), ("equalize", 0.6, None)),
        (("equalize", 0.4, None), ("solarize", 0.2, 4)),
        (("solarize", 0.6, 5), ("autocontrast", 0.6, None)),
        (("invert", 0.6, None), ("equalize", 1.0, None)),
        (("color", 0.6, 4), ("contrast", 1.0, 8)),
        (("equalize", 0.8, None), ("equalize", 0.6, None)),
    ),
}

OPERATIONS = {
    table: tuple(name for name in CODES if any(name == operation[0] for pair in pairs for operation in pair))
    for table, pairs in POLICIES.items()
}


def _range(name, magnitude, shape):
    """(centre, distance from it) of a strength; the sign of the distance is drawn."""
    height, width = shape[:2]
    m = magnitude or 0
    return {
        "rotate": (0, 3 * m),
        "shear_x": (0, 0.03 * m),
        "shear_y": (0, 0.03 * m),
        "translate_x": (0, 150 / 331 * width * m / 10),
        "translate_y": (0, 150 / 331 * height * m / 10),
        "posterize": (int(4 + 0.4 * m), 0),
        "solarize": (256 - 25.6 * m, 0),
    }.get(name, (1, 0.09 * m))


def arrays(table: str, shape: tuple[int, ...], released: bool) -> tuple[np.ndarray, ...]:
    """Writes a policy as arrays [25, 2]: int32 codes; float32 probabilities, centres and distances; bool signs."""
    pairs = POLICIES[table]
    codes = np.array([[CODES[name] for name, _, _ in pair] for pair in pairs], np.int32)
    probabilities = np.array([[probability for _, probability, _ in pair] for pair in pairs], np.float32)
    ranges = np.array([[_range(name, m, shape) for name, _, m in pair] for pair in pairs], np.float64)
    signed = np.ones(codes.shape, bool)
    if released and table == "cifar":
        signed[21, 0] = False
    if released and table == "imagenet":
        ranges[18, 0] = 1, 0.45
    return codes, probabilities, *ranges.transpose(2, 0, 1).astype(np.float32), signed


def sample(
    key: jax.Array, shape: tuple[int, ...], choices: None, *, table: str = "cifar", released: bool = True
) -> dict[str, jax.Array]:
    """Draws a pair of operations: which of the 25; for both of its operations whether it is carried out, and the sign
    of its strength.

    With m the magnitude of the policy: rotate +-3 m degrees, shear +-0.03 m, translate +-(15 / 331) m of the width or
    height, color, contrast, brightness and sharpness 1 +- 0.09 m, posterize floor(4 + 0.4 m) bits, solarize threshold
    256 - 25.6 m.

    Options: `table`, the policy for `cifar` or `imagenet`; `released`, whether two slips of the released code are kept,
    with which the published figures were made: the shear of pair 19 (ImageNet) is 1 +- 0.45 instead of +-0.15, and the
    first translation of pair 22 (CIFAR) is always positive.

    Returns:
      {"operation": int32 [2], the identity where not carried out, "strength": float32 [2]}.
    """
    del choices
    one_of("table", "a table", table, POLICIES)
    codes, probabilities, centres, distances, signed = (jnp.asarray(t) for t in arrays(table, shape, released))
    u = random.uniform(key, (5,))
    pair = jnp.floor(u[0] * len(POLICIES[table])).astype(jnp.int32)
    sign = jnp.where(signed[pair] & (u[3:5] < 0.5), -1.0, 1.0)
    return {
        "operation": jnp.where(u[1:3] < probabilities[pair], codes[pair], IDENTITY),
        "strength": centres[pair] + sign * distances[pair],
    }


def apply(image: jax.Array, params: Params) -> jax.Array:
    """Carries out the operations in order, on 8-bit levels (AutoAugment)."""
    return unpack(chain(pack(image), params["operation"], params["strength"]))
