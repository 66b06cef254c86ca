"""Compares the gradients of all corruptions with finite differences, and writes docs/gradients.md.

    python -m benchmarks.gradients --out=docs/gradients.md

Takes five minutes on a CPU. For each corruption, at its middle severity on an image of 64x64 pixels, the derivative J v by
`jax.jvp` is compared with D = (f(x + h v) - f(x - h v)) / 2h. v is smooth and h v at most 6 levels, more than the steps of a
rounding to 8 bits; the draws are the same in all three.
"""

from runtime import command  # isort: skip

import jax
import numpy as np
from absl import flags
from tqdm import tqdm

import corruptions
from runtime.files import write_atomically
from tests.reference.photographs import crops, photograph

_STEP = 6 / 255
_SIDE = 64
_KEY = jax.random.key(0)
_PAGE = """\
# Gradients

`jax.grad` goes through every corruption. Some corruptions round on the way, most of them to 8 bits. Their gradient is zero
(`color_balance` loses only the grey's part). `gradient="straight_through"` takes the gradient of the same formula without rounding:

```python
def loss(images):
    return corruptions.corrupt(key, images, "imagenet_c/jpeg_compression", 3, gradient="straight_through").sum()

slope = jax.grad(loss)(images)                                            # of float32 images
```

The corrupted images are the same either way. `shot_noise` gives the gradient of its mean; `quantization` and `color_dither` give the
gradient of the unchanged image; JPEG keeps the chroma that it stores. `random_choice` and `compose` pass the option on to their
members. `jax.grad` goes through `random_choice`, and through `compose` with a probability below 1, only for batches (`corrupt`).

The table compares J v of `jax.jvp` with the finite difference D over 6 levels to both sides, at the middle severity, by
|J v - D| / |D|: 0 where they agree, 1 where the gradient is zero. Values between belong to corruptions with kinks and jumps within
6 levels (hues, palettes, overflow, counts of photons, coefficients that JPEG drops). Their gradient ignores the jumps, and D does
not. The steps of `quantization` and `color_dither` are larger than 6 levels. `laion_c/mosaic` has the gradient of a
cell's mean colour, but D exchanges the cell's tile; `laion_c/vertical_lines` has the gradient of a line's colour, but D moves the
line. `python -m benchmarks.gradients` makes this page.

| corruption | default | straight_through |
|---|---|---|
"""


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


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    corruptions.laion_c.use_bank(crops(5000))
    rows = []
    for name in tqdm(sorted(corruptions.names()), unit="corruption", dynamic_ncols=True):
        rounds = corruptions.get(name).straight_through is not None
        without = f"{distance(name, 'straight_through'):.2f}" if rounds else "the same"
        rows.append(f"| `{name}` | {distance(name, None):.2f} | {without} |\n")
    write_atomically(given.out, _PAGE + "".join(rows))
    print(f"written to {given.out}")


if __name__ == "__main__":
    flags.DEFINE_string("out", None, "Markdown file to write (required).")
    command.run(main)
