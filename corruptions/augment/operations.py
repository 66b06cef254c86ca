"""The operations the schemes are made of, each as Pillow does it, on 8-bit images.

An operation is a code and a strength, so that a transform is a few numbers and images of a batch
may differ in it. The operations fall into kinds that share a computation, and `chain` branches on
the kind: with one transform for all images of a `vmap`, or in a loop over images, only the drawn
operation is carried out; with a transform per image XLA carries out each kind once and selects.

| operation | strength | Pillow |
| --- | --- | --- |
| autocontrast, equalize, invert | none | `ImageOps.autocontrast`, `equalize`, `invert` |
| posterize | bits kept, 1..8 | `ImageOps.posterize` |
| solarize | threshold, 0..256, may be fractional | `ImageOps.solarize` |
| shear_x, shear_y | slope d, source x = X + d Y (y = Y + d X) | `transform(AFFINE, BILINEAR)` |
| translate_x, translate_y | pixels d, source x = X + d | `transform(AFFINE, BILINEAR)` |
| rotate | degrees, counter-clockwise | `rotate(BILINEAR)` |
| color, contrast, brightness, sharpness | factor, 1 leaves the image | `ImageEnhance` |
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.augment import affine, enhance, point

_GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
BASE = ("autocontrast", "equalize", "posterize", "solarize", *_GEOMETRIC)
"""The nine operations of AugMix, in the order of all tables here."""

OPERATIONS = (*BASE, "invert", "color", "contrast", "brightness", "sharpness")
IDENTITY = 0
CODES = {name: code for code, name in enumerate(OPERATIONS, start=1)}

_STAYS, _POINT, _TABLE, _AFFINE, _ENHANCE = range(5)
_KINDS = {"posterize": _POINT, "solarize": _POINT, "invert": _POINT, "autocontrast": _TABLE, "equalize": _TABLE}
_KINDS |= dict.fromkeys(_GEOMETRIC, _AFFINE)
_KINDS |= dict.fromkeys(("color", "contrast", "brightness", "sharpness"), _ENHANCE)
_KIND_OF = np.array([_STAYS] + [_KINDS[name] for name in OPERATIONS], np.int32)


def chain(words: jax.Array, codes: jax.Array, strengths: jax.Array, *, names: Sequence[str] = OPERATIONS) -> jax.Array:
    """Carries out operations one after the other.

    Args:
      words: uint32 [H, W], see `packed`.
      codes: int32 [D], `CODES[name]` or `IDENTITY` each.
      strengths: float32 [D], in the units of the operations.
      names: static, the operations that may occur: kinds that none of them needs are not compiled.

    Returns:
      uint32 [H, W].
    """
    kinds = sorted({_STAYS} | {_KINDS[name] for name in names})
    branches = [_BRANCHES[kind] for kind in kinds]
    positions = jnp.asarray(np.searchsorted(kinds, _KIND_OF), jnp.int32)[codes]
    # Here, once per operation; where the pixels are worked on XLA might find a sine for each of
    # them.
    displacements = affine.displacement(codes - CODES["shear_x"], strengths, words.shape)

    def step(words, operation):
        position, *rest = operation
        return jax.lax.switch(position, branches, words, *rest), None

    return jax.lax.scan(step, words, (positions, codes, strengths, displacements))[0]


def _point(words, code, strength, displacement):
    del displacement
    threshold = jnp.where(code == CODES["invert"], 0.0, strength)
    return jax.lax.cond(code == CODES["posterize"], point.posterize, point.solarize, words, threshold)


def _table(words, code, strength, displacement):
    del strength, displacement
    counts = point.histogram(words)
    tables = point.equalize_table(counts), point.autocontrast_table(counts)
    return point.look_up(words, jnp.where(code == CODES["equalize"], *tables))


def _affine(words, code, strength, displacement):
    del code, strength
    return affine.resample(words, displacement)


def _enhance(words, code, strength, displacement):
    del displacement
    return enhance.enhance(words, code - CODES["color"], strength)


_BRANCHES = {
    _STAYS: lambda words, *_: words,
    _POINT: _point,
    _TABLE: _table,
    _AFFINE: _affine,
    _ENHANCE: _enhance,
}
