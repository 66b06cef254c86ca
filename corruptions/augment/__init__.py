"""Augmentation schemes as jitted, vmapped JAX functions: AugMix and its 512 subsets, AutoAugment, Patch Gaussian.

from corruptions import augment
augmented = augment.augment(jax.random.key(0), images, "augmix")     # a batch, uint8 or float32
scheme = augment.get("augmix=rotate+equalize")                       # the halves: scheme.sample, scheme.apply
"""

from corruptions.augment.batch import augment
from corruptions.augment.operations import BASE, OPERATIONS
from corruptions.augment.schemes import (
    COINCIDES_WITH,
    Scheme,
    canonical,
    coinciding,
    get,
    is_stored,
    known,
    names,
    subsets,
)

__all__ = [
    "BASE", "COINCIDES_WITH", "OPERATIONS", "Scheme", "augment", "canonical", "coinciding", "get", "is_stored", "known",
    "names", "subsets",
]  # fmt: skip
