"""Augmentation schemes as the trainings of a study: their names, and the settings of each.

standard              no augmentation but mirror and crop
NAME                  a scheme of corruptions.augment: augmix, augmix=rotate+equalize, patch_gaussian
NAME+jsd              the same with the consistency loss of AugMix
augmix=*              in settings: AugMix with each of the 512 subsets of its operations
stored=FOLDER/*.npz   in settings: the transforms of each of these files (tools.msd)
"""

import glob
from collections.abc import Iterable

from ml_collections import ConfigDict

from corruptions import augment
from training import augmentation

SUBSETS = "augmix=*"
"""AugMix with each of the 512 subsets of its operations."""
JSD = "+jsd"
JSD_WEIGHT = 12.0
"""Weight of the consistency loss of `NAME+jsd` (Hendrycks et al., AugMix, 2020)."""


def known(training: str) -> bool:
    """Tells whether a training reads as a scheme, `standard` apart; its operations may be wrong."""
    return augment.known(training.removesuffix(JSD))


def canonical(training: str) -> str:
    """Spells a training of a study in one way: a scheme, or as `augmentation.canonical`.

    Raises:
      ValueError: an unknown name, or a file that holds no stored transforms.
      FileNotFoundError: no such file.
    """
    if not known(training):
        return augmentation.canonical(training)
    return augment.canonical(training.removesuffix(JSD)) + (JSD if training.endswith(JSD) else "")


def expand(names: Iterable[str]) -> dict[str, str]:
    """Replaces `augmix=*` and patterns of files by the schemes they stand for, each once, in order.

    Returns:
      {canonical name: name in the settings, which tells where stored transforms lie}.

    Raises:
      ValueError: an unknown name, a corruption, or a pattern that no file matches.
      FileNotFoundError: no such file of stored transforms.
    """
    by_name = {}
    for name in names:
        for member in _members(name):
            if member != augmentation.STANDARD and not known(member):
                raise ValueError(
                    f"expected config.study.schemes of {augmentation.STANDARD}, {', '.join(augment.names())}, "
                    f"augmix=..., {SUBSETS}, op=..., stored=FILE, each also with {JSD}, found {member!r}"
                )
            by_name.setdefault(canonical(member), member)
    return by_name


def _members(name):
    if name == SUBSETS:
        return augment.subsets()
    if not (augment.is_stored(name) and glob.has_magic(name)):
        return (name,)
    head, _, pattern = name.partition("=")
    ending = JSD if pattern.endswith(JSD) else ""
    paths = sorted(glob.glob(pattern.removesuffix(JSD)))
    if not paths:
        raise ValueError(f"expected files of stored transforms at {pattern}, found none; tools.msd writes them")
    return [f"{head}={path}{ending}" for path in paths]


def applied(config: ConfigDict, training: str) -> ConfigDict:
    """Copies a config of a study and sets its training to a scheme or `standard`."""
    changed = ConfigDict(config.to_dict())
    changed.train.scheme = "" if training == augmentation.STANDARD else training.removesuffix(JSD)
    changed.train.jsd_weight = JSD_WEIGHT if training.endswith(JSD) else 0.0
    return changed
