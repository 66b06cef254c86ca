"""Augmentation schemes as jitted, vmapped JAX functions: AugMix and its 512 subsets, AutoAugment,
Patch Gaussian.

from corruptions import augment
augmented = augment.augment(jax.random.key(0), images, "augmix")     # a batch, uint8 or float32
scheme = augment.get("augmix=rotate+equalize")                       # the halves: scheme.sample, scheme.apply
"""

from corruptions.augment.batch import augment
from corruptions.augment.coincidence import COINCIDES_WITH, coinciding
from corruptions.augment.naming import canonical, get, is_stored, known, names, subsets
from corruptions.augment.operations import BASE, OPERATIONS
from corruptions.augment.scheme import Scheme

__all__ = [
    "BASE",
    "COINCIDES_WITH",
    "OPERATIONS",
    "Scheme",
    "augment",
    "canonical",
    "coinciding",
    "get",
    "is_stored",
    "known",
    "names",
    "subsets",
]
