"""The common parts of the NOC tests: names, a procedural photograph, compiled corruptions and draws."""

import functools

import jax
import numpy as np
import scipy.ndimage

import corruptions
from corruptions import noc

NAMES = [name.removeprefix("noc/") for name in corruptions.names("noc_candidates")] + ["arlequin"]
SQUARE = (224, 224, 3)


def photograph(shape, seed=0):
    """Smooth colours, a few edges and a little texture, in multiples of 1/255; some pixels black, white and grey."""
    rng = np.random.default_rng(seed)
    smooth = scipy.ndimage.gaussian_filter(rng.normal(size=shape), (shape[0] / 12, shape[1] / 12, 0), mode="wrap")
    image = 0.5 + 0.2 * smooth / smooth.std() + 0.03 * rng.normal(size=shape)
    image[shape[0] // 3 : shape[0] // 2, : shape[1] // 2] *= 0.4
    image[:, shape[1] // 2 :] += rng.uniform(-0.3, 0.3, 3)
    image[:4, :4], image[4:8, :4], image[8:12, :4] = 0, 1, 0.6
    return (np.round(np.clip(image, 0, 1) * 255) / 255).astype(np.float32)


@functools.cache
def compiled(name, shape):
    """(key, image, severity) -> (params, corrupted image), one compile for all severities."""
    corruption = getattr(noc, name)

    @jax.jit
    def run(key, image, severity):
        params = corruption.sample(key, shape, severity)
        return params, corruption.apply(image, params)

    return run


def draws(name, number, severity=None, shape=SQUARE, **options):
    """Params of `number` independent draws, as NumPy arrays with a leading axis."""
    keys = jax.random.split(jax.random.key(7), number)
    return jax.tree.map(np.asarray, _sampler(name, shape, severity is None, **options)(keys, severity))


@functools.cache
def _sampler(name, shape, drawn, **options):
    sample = functools.partial(getattr(noc, name).sample, shape=shape, **options)
    return jax.jit(
        jax.vmap(lambda key, severity: dict(sample(key, severity=None if drawn else severity)), in_axes=(0, None))
    )
