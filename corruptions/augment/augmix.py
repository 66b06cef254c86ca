"""AugMix: an image mixed with chains of operations; and an operation on its own.

D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", ICLR 2020, as
trained and measured by Mintun et al. (2021), who also restrict it to each of the 512 subsets of its nine operations.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.augment.operations import BASE, CODES, IDENTITY, chain, levels, nearest, pack, unpack
from corruptions.core.corruption import Params
from corruptions.core.errors import Refused
from corruptions.primitives import color, random

LEAST_LEVEL = 0.1
GREATEST_SEVERITY = 10.0


def choices(names: Sequence[str]) -> dict[str, Any]:
    """Writes operations as the sampler's arrays: codes padded to nine, and their number."""
    codes = [CODES[name] for name in names]
    padding = [IDENTITY] * (len(BASE) - len(codes))
    return {"codes": np.array(codes + padding, np.int32), "number": np.int32(len(codes))}


def sample(
    key: jax.Array,
    shape: tuple[int, ...],
    choices: Params,
    *,
    severity: float = 3.0,
    whole: bool = False,
    width: int = 3,
    depth: int = 3,
) -> dict[str, jax.Array]:
    """Draws a mixture: weights w ~ Dirichlet(1, ..., 1) of the chains and m ~ Beta(1, 1) of their sum; for each chain a
    length uniform among 1..depth; for each step of it an operation uniform among those of the scheme, with replacement,
    its level ~ U[0.1, severity) and its sign.

    Options: `severity`, 3 (CIFAR) or 1 (ImageNet), above 0.1 and up to 10; `whole`, whether rotations and translations
    are truncated to whole degrees and pixels (ImageNet); `width`, number of chains; `depth`, their greatest length.

    Returns:
      {"weights": float32 [width], "mix": float32 [], "operation": int32 [width, depth], "strength": float32 [width,
      depth]}; beyond the length of a chain the operation is the identity.
    """
    check_severity(severity)
    if width < 1 or depth < 1:
        raise Refused("width", "a width and a depth of at least 1", f"{width} and {depth}")
    places = width * depth
    u = random.uniform(key, (2 * width + 1 + 3 * places,))
    for_weights, mix, for_length = u[:width], u[width], u[width + 1 : 2 * width + 1]
    for_code, for_level, for_sign = u[2 * width + 1 :].reshape(3, width, depth)
    # Dirichlet(1, ..., 1): exponential variables divided by their sum, which must not be 0.
    gaps = jnp.maximum(-jnp.log1p(-for_weights), np.finfo(np.float32).tiny)
    length = 1 + jnp.floor(for_length * depth).astype(jnp.int32)
    code = _choose(for_code, choices)
    code = jnp.where(jnp.arange(depth)[None, :] < length[:, None], code, IDENTITY)
    return {
        "weights": gaps / gaps.sum(),
        "mix": mix,
        "operation": code,
        "strength": _strength(code, for_level, for_sign, shape, severity, whole),
    }


def apply(image: jax.Array, params: Params) -> jax.Array:
    """Mixes the image with the ends of its chains: x + m sum_i w_i (chain_i(x) - x) (AugMix).

    The chains compute with 8-bit levels, rounded where the image has others; the mixture is not rounded.
    """
    words = pack(image)

    def run(_, operations):
        return None, chain(words, *operations, names=BASE)

    _, ends = jax.lax.scan(run, None, (params["operation"], params["strength"]))
    start = nearest(image).astype(jnp.float32)
    change = sum(params["weights"][i] * (levels(ends[i]) - start) for i in range(ends.shape[0]))
    return color.clip(image + color.from_levels(params["mix"] * change))


def sample_one(
    key: jax.Array, shape: tuple[int, ...], choices: Params, *, severity: float = 3.0, whole: bool = False
) -> dict[str, jax.Array]:
    """Draws one operation alone, with the strength it has in AugMix: its level ~ U[0.1, severity) and its sign.

    Options as in AugMix: `severity` and `whole`. Returns {"operation": int32 [], "strength": float32 []}.
    """
    check_severity(severity)
    u = random.uniform(key, (3,))
    code = _choose(u[0], choices)
    return {"operation": code, "strength": _strength(code, u[1], u[2], shape, severity, whole)}


def apply_one(image: jax.Array, params: Params) -> jax.Array:
    """Carries out the operation on 8-bit levels."""
    return unpack(chain(pack(image), params["operation"][None], params["strength"][None], names=BASE))


def _choose(uniform, choices):
    number = jnp.float32(choices["number"])
    return jnp.asarray(choices["codes"])[jnp.floor(uniform * number).astype(jnp.int32)]


def _strength(code, for_level, for_sign, shape, severity, whole):
    """Computes the strength of operations at drawn levels, U[0.1, severity), and signs; see `strength`."""
    level = LEAST_LEVEL + (severity - LEAST_LEVEL) * for_level
    return strength(code, level, jnp.where(for_sign < 0.5, -1.0, 1.0), shape, whole)


def check_severity(severity: float) -> None:
    """Raises ValueError unless 0.1 < severity <= 10, where all operations are defined."""
    if not LEAST_LEVEL < severity <= GREATEST_SEVERITY:
        raise Refused("severity", f"a severity above {LEAST_LEVEL} and up to {GREATEST_SEVERITY:g}", repr(severity))


def strength(code: jax.Array, level: jax.Array, sign: jax.Array, shape: tuple[int, ...], whole: bool) -> jax.Array:
    """Computes the strength of operations at a level (Mintun et al., 2021; Hendrycks et al., 2020).

    With l the level: rotate +-3 l degrees, shear +-0.03 l, translate +-l / 30 of the image's width or height (pixels),
    posterize 4 - floor(0.4 l) bits, solarize threshold 256 - floor(25.6 l); autocontrast and equalize have none (0).
    `code` (of `operations.CODES`), `level` and `sign`, -1 or 1, have any one shape, as the result has. `whole`
    truncates degrees and pixels to whole numbers, as for ImageNet.
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
