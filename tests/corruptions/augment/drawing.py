"""Many transforms of a scheme at once, as NumPy arrays; the operations by Pillow, and AugMix composed of them in NumPy."""

import dataclasses
import functools

import jax
import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from corruptions import augment
from corruptions.augment import operations

NAMES = (None, *operations.OPERATIONS)  # indexed by code


@functools.cache
def draws(name, number=20_000, shape=(32, 32, 3), seed=0, **options):
    """Params of `number` transforms, with a leading axis."""
    keys = jax.random.split(jax.random.key(seed), number)
    sampler = _sampler(name.partition("=")[0], shape, tuple(options.items()))
    return {k: np.asarray(v) for k, v in sampler(keys, augment.get(name).choices).items()}


@functools.cache
def _sampler(family, shape, options):
    """One compile for all members of a family: their operations are an argument."""
    member = augment.get(family + "=rotate" if family.startswith("op") else family)

    @jax.jit
    def sample(keys, choices):
        scheme = dataclasses.replace(member, choices=choices)
        return jax.vmap(lambda key: scheme.sample(key, shape, **dict(options)))(keys)

    return sample


def operation(name, image, strength):
    """uint8 [H, W, 3] to the same; the strength in the unit of the operation."""
    picture = Image.fromarray(image)
    slope = {
        "shear_x": (1, strength, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, strength, 1, 0),
        "translate_x": (1, 0, strength, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, strength),
    }
    if name in slope:
        result = picture.transform(picture.size, Image.Transform.AFFINE, slope[name], Image.Resampling.BILINEAR)
    elif name == "rotate":
        result = picture.rotate(strength, resample=Image.Resampling.BILINEAR)
    elif name == "posterize":
        result = ImageOps.posterize(picture, int(strength))
    elif name == "solarize":
        result = ImageOps.solarize(picture, strength)
    elif name in ("autocontrast", "equalize", "invert"):
        result = getattr(ImageOps, name)(picture)
    else:
        result = getattr(ImageEnhance, name.capitalize())(picture).enhance(strength)
    return np.asarray(result)


def chain(names, strengths, image):
    """Operations in order; None is left out."""
    for name, strength in zip(names, strengths, strict=True):
        image = image if name is None else operation(name, image, float(strength))
    return image


def augmix(image, weights, mix, chains):
    """(1 - m) x + m sum_i w_i chain_i(x), float64 levels; chains a list of (names, strengths)."""
    mixed = sum(w * chain(*one, image).astype(np.float64) for w, one in zip(weights, chains, strict=True))
    return (1 - mix) * image + mix * mixed
