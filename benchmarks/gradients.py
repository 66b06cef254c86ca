"""Compares the gradients of all corruptions with finite differences, and fills the table of docs/gradients.md.

    python -m benchmarks.gradients --out=docs/gradients.md

Takes five minutes on a CPU. For each corruption, at its middle severity on an image of 64x64 pixels, the derivative J v by
`jax.jvp` is compared with D = (f(x + h v) - f(x - h v)) / 2h. v is smooth and h v at most 6 levels, more than the steps of a
rounding to 8 bits; the draws are the same in all three. At pixels that are exactly 0 or 1 the derivative is compared with
that of the same image moved inside of the range by a twentieth of a level.
"""

from runtime import command  # isort: skip

import pathlib

import jax
import numpy as np
from absl import flags

import corruptions
from runtime.files import write_atomically
from runtime.log import bar
from tests.reference.photographs import crops, photograph

_STEP = 6 / 255
_SIDE = 64
_KEY = jax.random.key(0)
_INSIDE = 2e-4
_HEADER = "| corruption | default | straight_through | black, white |\n|---|---|---|---|\n"


def images():
    """Draws an image within [.2, .8] and a direction v whose largest component is 1, both float32."""
    image, other = (photograph(_SIDE, _SIDE, seed=seed).astype(np.float32) / 255 for seed in (0, 1))
    direction = other - other.mean()
    return 0.2 + 0.6 * image, direction / np.abs(direction).max()


def distance(name, gradient):
    """Computes |J v - D| / |D|, root mean squares over the image; it is 1 where J is 0."""
    corruption, (image, direction) = corruptions.get(name), images()
    severities = corruptions.severities(name)
    params = corruption.sample(_KEY, image.shape, severities[len(severities) // 2])
    derive = jax.jit(lambda x, v: jax.jvp(lambda x: corruption.apply(x, params, gradient=gradient), (x,), (v,))[1])
    ahead, behind = (np.asarray(corruption.apply(image + step * direction, params)) for step in (_STEP, -_STEP))
    difference = (ahead - behind) / (2 * _STEP)
    return float(np.sqrt(np.mean((derive(image, direction) - difference) ** 2) / np.mean(difference**2)))


def difference_at_the_ends(name, side=_SIDE):
    """Computes |J(x) v - J(y) v| / |J(y) v| for an image x of pixels that are 0, 1/2 or 1, most of them grey, y = x + .0002 (1 -
    2 x) and a direction v that is grey: 0 where the slope at black and white pixels is that of pixels just inside.
    """
    draws, corruption = np.random.default_rng(3), corruptions.get(name)
    colours, greys = (draws.integers(0, 3, (side, side, channels)) / 2 for channels in (3, 1))
    image = np.where(draws.random((side, side, 1)) < 0.6, greys, colours).astype(np.float32)
    direction = np.broadcast_to(0.5 + draws.random((side, side, 1)), image.shape).astype(np.float32)
    severities = corruptions.severities(name)
    params = corruption.sample(_KEY, image.shape, severities[len(severities) // 2])
    derive = jax.jit(
        lambda x: jax.jvp(lambda x: corruption.apply(x, params, gradient="straight_through"), (x,), (direction,))[1]
    )
    inside = np.asarray(derive(image + _INSIDE * (1 - 2 * image)))
    return float(np.sqrt(np.mean((derive(image) - inside) ** 2) / np.mean(inside**2)))


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    text, header, _ = pathlib.Path(given.out).read_text(encoding="utf-8").partition(_HEADER)
    if not header:
        raise ValueError(f"expected the table of docs/gradients.md in --out, found none in {given.out}")
    corruptions.laion_c.use_bank(crops(5000))
    rows = []
    for name in bar("corruption", sorted(corruptions.names())):
        rounds = corruptions.get(name).straight_through is not None
        without = f"{distance(name, 'straight_through'):.2f}" if rounds else "the same"
        rows.append(f"| `{name}` | {distance(name, None):.2f} | {without} | {difference_at_the_ends(name):.2f} |\n")
    write_atomically(given.out, text + header + "".join(rows))
    print(f"written to {given.out}")


if __name__ == "__main__":
    flags.DEFINE_string("out", None, "Page that ends with the table (required).")
    command.run(main)
