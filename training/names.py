"""Names of trainings, and the names that settings take.

A model of a study is trained with `standard` (mirror and crop alone), a corruption, `mixture=BENCHMARK`, or a scheme of
corruptions.augment: augmix, augmix=rotate+equalize, patch_gaussian. `NAME+jsd` adds the consistency loss of AugMix to a
scheme. In settings `augmix=*` stands for AugMix with each of the 512 subsets of its operations, and
`stored=FOLDER/*.npz` for the transforms of each of these files (tools.msd). Checks of settings raise ValueError, whose
text tells the expected names.
"""

import glob
import importlib.util
import math
from collections.abc import Iterable, Mapping
from typing import Any

import corruptions
import data
from corruptions import enhance as enhancements
from corruptions.checks import suggest
from runtime.workdirs import TRAINED
from training import augmentation

SUBSETS = "augmix=*"
"""AugMix with each of the 512 subsets of its operations."""
JSD = "+jsd"
SYNCHRONISED, PER_DEVICE, RUNNING, _GROUPS = "synchronised", "per_device", "running", "groups="
SEVERITY = "'random', 'levels', or numbers with commas between them ('1,3,5')"
SCHEME = "a scheme of corruptions.augment.names(), or ''"


def is_scheme(training: str) -> bool:
    """Says whether a training reads as a scheme, `standard` apart; its operations may be wrong."""
    return corruptions.augment.known(training.removesuffix(JSD))


def canonical(training: str) -> str:
    """Spells a training of a study in one way: a scheme, or as `augmentation.canonical`.

    Raises:
      ValueError: an unknown name, or a file that holds no stored transforms.
      FileNotFoundError: no such file.
    """
    if not is_scheme(training):
        return augmentation.canonical(training)
    return corruptions.augment.canonical(training.removesuffix(JSD)) + (JSD if training.endswith(JSD) else "")


def expand_schemes(settings: Iterable[str]) -> dict[str, str]:
    """Replaces `augmix=*` and patterns of files by the schemes they stand for, each once, in order.

    Returns:
      {canonical name: name in the settings, which tells where stored transforms lie}.

    Raises:
      ValueError: an unknown name, a corruption, or a pattern that no file matches.
      FileNotFoundError: no such file of stored transforms.
    """
    by_name = {}
    for name in settings:
        for member in _members(name):
            if member != augmentation.STANDARD and not is_scheme(member):
                raise ValueError(
                    f"expected config.study.schemes of {augmentation.STANDARD}, {', '.join(corruptions.augment.names())}, "
                    f"augmix=..., {SUBSETS}, op=..., stored=FILE, each also with {JSD}, found {member!r}"
                )
            by_name.setdefault(canonical(member), member)
    return by_name


def _members(name):
    if name == SUBSETS:
        return corruptions.augment.subsets()
    if not (corruptions.augment.is_stored(name) and glob.has_magic(name)):
        return (name,)
    head, _, pattern = name.partition("=")
    ending = JSD if pattern.endswith(JSD) else ""
    paths = sorted(glob.glob(pattern.removesuffix(JSD)))
    if not paths:
        raise ValueError(f"expected files of stored transforms at {pattern}, found none; tools.msd writes them")
    return [f"{head}={path}{ending}" for path in paths]


def tensorboard(wanted: Any) -> None:
    """Checks whether metrics can be written for TensorBoard."""
    if not isinstance(wanted, bool):
        raise ValueError(f"expected True or False, found {wanted!r}")
    if wanted and importlib.util.find_spec("tensorboardX") is None:
        raise ValueError(
            'expected False, or the package tensorboardX, found none; pip install "jax-corruptions[tensorboard]"'
        )


def corruption(name: str) -> None:
    """Checks a corruption or a benchmark."""
    if name not in corruptions.benchmarks():
        corruptions.get(name)


def corruption_options(options: Mapping[str, Any]) -> None:
    """Checks {corruption: {option: value}}, ranges and levels against the corruption's scale."""
    for name, given in options.items():
        one = corruptions.get(name)
        if not isinstance(given, Mapping):
            raise ValueError(f"{name}: expected {{option: value}}, found {given!r}")
        corruptions.checks.options(one.qualified_name, one.options, given)
        scale = one.scale
        if isinstance(scale, corruptions.Levels):
            for option, check in (("range", corruptions.levels.level_range), ("levels", corruptions.levels.selected)):
                check(given.get(option), scale.count)
        elif (bounds := given.get("range")) is not None and not _is_pair(bounds):
            raise ValueError(f"{name}: expected range=(mild, severe), two finite numbers, found {bounds!r}")


def _is_pair(bounds):
    return (
        isinstance(bounds, tuple | list)
        and len(bounds) == 2
        and all(isinstance(end, int | float) and math.isfinite(end) for end in bounds)
    )


def mixture(name: str) -> None:
    """Checks `mixture=BENCHMARK`."""
    if augmentation.benchmark(name) == name:
        raise ValueError(f"expected 'mixture=BENCHMARK', found {name!r}")
    augmentation.members(name)


def scheme(name: str) -> None:
    """Checks an augmentation scheme; stored ones, which are files, are checked when they are read."""
    if name and not corruptions.augment.is_stored(name):
        corruptions.augment.get(name)


def study_scheme(name: str) -> None:
    """Checks a training of tools.scheme_study; stored ones are checked when they are read."""
    alone = name.removesuffix(JSD)
    if alone not in (SUBSETS, augmentation.STANDARD) and not corruptions.augment.is_stored(alone):
        corruptions.augment.get(alone)
    elif name != alone and not corruptions.augment.is_stored(alone):
        raise ValueError(f"expected {JSD} after one scheme, whose views it compares, found {name!r}")


def enhancement(name: str) -> None:
    """Checks an enhancement, or `train=` before `stability` or an enhancement of training images."""
    alone = name.removeprefix(TRAINED)
    if name == f"{TRAINED}stability":
        return
    enhancements.check(alone)
    if name != alone and alone not in enhancements.of_pixels():
        raise ValueError(
            f"expected {TRAINED} with one of {', '.join(enhancements.of_pixels())}, stability, found {name!r}"
        )


def severity(text: str) -> None:
    """Checks `random`, `levels`, or numbers; which numbers a corruption takes depends on it."""
    if text in ("random", "levels"):
        return
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(math.isfinite(value) and value >= 0 for value in values):
        raise ValueError(f"expected {SEVERITY}, found {text!r}")


def dataset(name: str) -> None:
    """Checks the name of a dataset."""
    if name not in data.names():
        hint = suggest(name, data.names())
        raise ValueError(f"expected a dataset out of {', '.join(data.names())}, found {name!r}{hint}")


def batch_norm(setting: str, devices: int = 1) -> str:
    """Spells config.train.batch_norm independently of the devices: `synchronised`, `groups=G` or `running`.

    * `synchronised`: mean and variance of the whole batch; the number of devices only changes rounding.
    * `per_device`: each device that shares a model's batch normalises its part by the part's own statistics, as
      data-parallel training of the papers' time does. The result then depends on the number of devices, so the config
      of a run says `groups=G`, G the number that it began with; on another number of devices it continues only with
      the setting `groups=G`.
    * `groups=G`: G equal parts of consecutive images, on any number of devices (Hoffer et al., 2017: ghost batch norm).
    * `running`: images are normalised by the running statistics, as in evaluation, and these stay as they are.

    Evaluation uses one set of running statistics: the mean over the parts of each part's mean and of each part's
    unbiased variance enters the running average.

    Args:
      setting: as above.
      devices: number of devices that share a model's batch.

    Raises:
      ValueError: another setting.
    """
    if setting == RUNNING:
        return RUNNING
    number = devices if setting == PER_DEVICE else norm_groups(setting)
    return SYNCHRONISED if number == 1 else f"{_GROUPS}{number}"


def norm_groups(setting: str) -> int:
    """Counts the parts of a batch with statistics of their own, of a setting that `batch_norm` spelled; 0 for `running`.

    Raises:
      ValueError: another setting.
    """
    if setting == RUNNING:
        return 0
    number = setting.removeprefix(_GROUPS)
    if setting == SYNCHRONISED:
        return 1
    if setting != number and number.isdecimal() and int(number) > 0:
        return int(number)
    raise ValueError(
        f"expected config.train.batch_norm '{SYNCHRONISED}', '{PER_DEVICE}', '{_GROUPS}G' or '{RUNNING}', found {setting!r}"
    )


def folder(name: str) -> None:
    """Checks a folder's name within the workdir."""
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"expected the name of a folder within the workdir, found {name!r}")


def not_empty(name: str) -> None:
    """Checks that there is a name; the command checks it where it is used."""
    if not name:
        raise ValueError("expected a name, found ''")
