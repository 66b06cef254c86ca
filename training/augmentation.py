"""Augmentation of training images: names of trainings, and the augmentation over the devices of a mesh.

A model of a study is trained with `standard` (only mirror and crop), a corruption, `mixture=BENCHMARK`, or a scheme of
corruptions.augment: augmix, augmix=rotate+equalize, patch_gaussian. `NAME+jsd` adds the consistency loss of AugMix to a
scheme. In settings `augmix=*` stands for AugMix with each of the 512 subsets of its operations, and
`stored=FOLDER/*.npz` for the transforms of each file there (tools.msd). Checks of settings raise ValueError, whose
text tells the expected names.
"""

import dataclasses
import functools
import glob
import math
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

import corruptions
from corruptions import enhance as enhancements
from corruptions.core.registry import qualified_options, with_levels
from runtime import meshes
from runtime.workdirs import TRAINED

STANDARD = "standard"
SUBSETS = "augmix=*"
"""AugMix with each of the 512 subsets of its operations."""
JSD = "+jsd"
SEVERITY = "'random', 'levels', or numbers with commas between them ('1,3,5')"
MIXTURE = "mixture="
SYNCHRONISED, PER_DEVICE, RUNNING, _GROUPS = "synchronised", "per_device", "running", "groups="


def members(augmentation: str) -> tuple[str, ...]:
    """Lists the corruptions behind an augmentation: none, one, or a benchmark's; raises ValueError for an unknown name.

    Args:
      augmentation: `standard`, a corruption's name, or `mixture=BENCHMARK` (each image draws one of
        its members, at one of the severities that the benchmark selects).
    """
    if augmentation == STANDARD:
        return ()
    if augmentation.startswith(MIXTURE):
        return corruptions.names(benchmark(augmentation))
    return (corruptions.get(augmentation).qualified_name,)


def benchmark(augmentation: str) -> str:
    """Returns the benchmark that a mixture is made of; other augmentations unchanged."""
    return augmentation.removeprefix(MIXTURE)


def canonical(augmentation: str) -> str:
    """Spells an augmentation (`members`) in one way: `standard`, a qualified name, or `mixture=BENCHMARK`."""
    names = members(augmentation)
    return names[0] if len(names) == 1 and not augmentation.startswith(MIXTURE) else augmentation


def is_scheme(training: str) -> bool:
    """Returns True if the name of a training has the form of a scheme, `standard` apart; its operations may be wrong."""
    return corruptions.augment.known(training.removesuffix(JSD))


def canonical_training(training: str) -> str:
    """Spells a training of a study in one way: a scheme, or as `canonical`.

    Raises:
      ValueError, FileNotFoundError: an unknown name, a file that holds no stored transforms, no such file.
    """
    if not is_scheme(training):
        return canonical(training)
    return corruptions.augment.canonical(training.removesuffix(JSD)) + (JSD if training.endswith(JSD) else "")


def expand_schemes(settings: Iterable[str]) -> dict[str, str]:
    """Replaces `augmix=*` and patterns of files by the schemes they stand for, each once, in order.

    Returns:
      {canonical name: name in the settings, which tells where stored transforms lie}.

    Raises:
      ValueError, FileNotFoundError: an unknown name, a corruption, or no such file of stored transforms.
    """
    by_name = {}
    for name in settings:
        for member in _meant(name):
            if member != STANDARD and not is_scheme(member):
                raise ValueError(
                    f"expected config.study.schemes of {STANDARD}, {', '.join(corruptions.augment.names())}, "
                    f"augmix=..., {SUBSETS}, op=..., stored=FILE, each also with {JSD}, found {member!r}"
                )
            by_name.setdefault(canonical_training(member), member)
    return by_name


def _meant(name):
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


def scheme_of(name: str, transforms: str) -> corruptions.augment.Scheme | None:
    """Makes the augmentation scheme `name` (config.train.scheme); stored transforms are read from the file `transforms`.

    Raises:
      ValueError: the digest in the name is not the digest of the transforms.
    """
    if not name:
        return None
    if not (corruptions.augment.is_stored(name) and transforms):
        return corruptions.augment.get(name)
    scheme = corruptions.augment.get(f"stored={transforms}")
    if scheme.name != corruptions.augment.canonical(name):
        raise ValueError(f"expected the transforms {name} in {transforms}, found {scheme.name}")
    return scheme


def stays_uint8(scheme: corruptions.augment.Scheme | None, jsd_weight: float) -> bool:
    """Returns True if training images stay uint8: Patch Gaussian for CIFAR comes before the crop and is truncated.

    Images of other schemes, and the views of the JSD loss, are float32.
    """
    return scheme is None or ("patch_gaussian" in (scheme.name, scheme.drawn_from) and not jsd_weight)


def batch_norm(setting: str, devices: int = 1) -> str:
    """Spells config.train.batch_norm independently of the devices: `synchronised`, `groups=G` or `running`.

    * `synchronised`: mean and variance of the whole batch; the number of devices only changes rounding.
    * `per_device`: each device that shares a model's batch normalises its part by the part's own statistics, as
      data-parallel training of the papers' time does. The result then depends on the number of devices, so the config
      of a run says `groups=G`, G the number that it began with; on another number of devices it continues only with
      the setting `groups=G`.
    * `groups=G`: G equal parts of consecutive images, on any number of devices (Hoffer et al., 2017: ghost batch norm).
    * `running`: images are normalised by the running statistics, as in evaluation, and these do not change.

    Evaluation uses one set of running statistics: the mean over the parts of each part's mean and of each part's
    unbiased variance enters the running average. `devices` share a model's batch. Another setting raises ValueError.
    """
    if setting == RUNNING:
        return RUNNING
    number = devices if setting == PER_DEVICE else norm_groups(setting)
    return SYNCHRONISED if number == 1 else f"{_GROUPS}{number}"


def norm_groups(setting: str) -> int:
    """Counts the parts of a batch with separate statistics in a setting of `batch_norm`; 0 for `running`."""
    if setting == RUNNING:
        return 0
    if setting == SYNCHRONISED:
        return 1
    number = setting.removeprefix(_GROUPS)
    if setting != number and number.isdecimal() and int(number) > 0:
        return int(number)
    raise ValueError(
        f"expected config.train.batch_norm '{SYNCHRONISED}', '{PER_DEVICE}', '{_GROUPS}G' or '{RUNNING}', found "
        f"{setting!r}"
    )


# Checks of settings.


def check_corruption(name: str) -> None:
    """Checks a corruption or a benchmark."""
    if name not in corruptions.benchmarks():
        corruptions.get(name)


def check_corruption_options(options: Mapping[str, Any]) -> None:
    """Checks {corruption: {option: value}}, ranges and levels against the corruption's scale."""
    for name, given in qualified_options(options).items():
        scale = corruptions.get(name).scale
        if isinstance(scale, corruptions.Levels):
            corruptions.core.severity.level_range(given.get("range"), scale.count)
            corruptions.core.severity.selected(given.get("levels"), scale.count)
        elif (bounds := given.get("range")) is not None:
            numbers = isinstance(bounds, tuple | list) and all(isinstance(end, int | float) for end in bounds)
            if not numbers or len(bounds) != 2 or not all(map(math.isfinite, bounds)):
                raise ValueError(f"{name}: expected range=(mild, severe), two finite numbers, found {bounds!r}")


def check_mixture(name: str) -> None:
    """Checks `mixture=BENCHMARK`."""
    if benchmark(name) == name:
        raise ValueError(f"expected 'mixture=BENCHMARK', found {name!r}")
    members(name)


def check_scheme(name: str) -> None:
    """Checks an augmentation scheme; files of stored transforms are checked when they are read."""
    if name and not corruptions.augment.is_stored(name):
        corruptions.augment.get(name)


def check_study_scheme(name: str) -> None:
    """Checks a training of tools.scheme_study; files of stored transforms are checked when they are read."""
    alone = name.removesuffix(JSD)
    if alone not in (SUBSETS, STANDARD) and not corruptions.augment.is_stored(alone):
        corruptions.augment.get(alone)
    elif name != alone and not corruptions.augment.is_stored(alone):
        raise ValueError(f"expected {JSD} after one scheme, whose views it compares, found {name!r}")


def check_enhancement(name: str) -> None:
    """Checks an enhancement with its settings, or `train=` before `stability` or an enhancement of training images."""
    if not name.startswith(TRAINED):
        enhancements.check(name)
    elif (alone := name.removeprefix(TRAINED)) != "stability":
        check_enhancement_of_images(alone)


def check_enhancement_of_images(name: str) -> None:
    """Checks an enhancement that returns images, which a training can take, with its settings."""
    enhancements.check(name)
    if name.partition(":")[0] not in (known := enhancements.of_pixels()):
        raise ValueError(
            f"expected an enhancement of images, {', '.join(known)}, found {name!r}, which is for tests only"
        )


def check_severity(text: str) -> None:
    """Checks `random`, `levels`, or numbers; which numbers a corruption takes depends on it."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if text not in ("random", "levels") and not all(0 <= value < math.inf for value in values):
        raise ValueError(f"expected {SEVERITY}, found {text!r}")


# Augmentation of images.


def corrupt_or_mix(
    mesh: Mesh,
    augmentation: str,
    key: jax.Array,
    images: jax.Array,
    index: jax.Array,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> jax.Array:
    """Corrupts images [M, H, W, 3], each at its own severity, by an augmentation (`members`) but `standard`; the type stays.

    A mixture deals its members to the M images in turn, so that their shares differ by at most one image; batches are
    shuffled, so each image meets a random member.

    Args:
      mesh: images are split over its 'data' axis.
      key, index: root key of the augmentation; int32 [M], number of each image within the run.
      options: {corruption: its static options}, for example calibrated ranges.
    """
    names = members(augmentation)
    options = options or {}
    if not augmentation.startswith(MIXTURE):
        return corrupt_on_mesh(mesh, key, images, names[0], None, index, options.get(names[0], {}))
    out = jnp.zeros_like(images)
    for turn, name in enumerate(names):
        dealt = slice(turn, None, len(names))
        settings = with_levels(options.get(name, {}), corruptions.selected_levels(name, benchmark(augmentation)))
        part = corrupt_on_mesh(mesh, jax.random.fold_in(key, turn), images[dealt], name, None, index[dealt], settings)
        out = out.at[dealt].set(part)
    return out


def corrupt_on_mesh(
    mesh: Mesh,
    key: jax.Array,
    images: jax.Array,
    name: str,
    severity: float | jax.Array | None,
    index: jax.Array,
    options: Mapping[str, Any],
) -> jax.Array:
    """Corrupts a batch split over the mesh, as `corruptions.corrupt` does, whatever the split."""
    settings = name, corruptions.core.checks.static_options(options)
    if mesh.shape["data"] == 1:
        return _corrupted(settings, key, images, index, severity)
    severity = None if severity is None else jnp.asarray(severity)
    return _shards(mesh, _corrupted, settings)(key, images, index, severity)


def scheme_on_mesh(
    mesh: Mesh, scheme: corruptions.augment.Scheme, key: jax.Array, images: jax.Array, index: jax.Array
) -> jax.Array:
    """Augments images [M, H, W, 3] by a scheme, split over the mesh; float32 in [0, 1].

    The result equals `corruptions.augment.augment`, whatever the split.
    """
    if mesh.shape["data"] == 1:
        return _augmented(scheme, key, images, index, scheme.choices)
    return _shards(mesh, _augmented, scheme)(key, images, index, _choices(mesh, scheme))


def enhance_on_mesh(mesh: Mesh, name: str, images: jax.Array) -> jax.Array:
    """Enhances images [M, H, W, 3], split over the mesh, as `corruptions.enhance.enhance`."""
    if mesh.shape["data"] == 1:
        return _enhanced(name, None, images, None, None)
    return _shards(mesh, _enhanced, name)(None, images, jnp.arange(images.shape[0]), None)


def _corrupted(settings, key, images, index, severity):
    name, options = settings
    # Checks of values wait for the device; these values are ours.
    return corruptions.corrupt(key, images, name, severity, index=index, validate=False, **dict(options))


def _augmented(scheme, key, images, index, choices):
    scheme = dataclasses.replace(scheme, choices=choices)
    return corruptions.augment.augment(key, images, scheme, index=index, dtype=jnp.float32, validate=False)


def _enhanced(name, key, images, index, argument):
    return enhancements.enhance(images, name, validate=False)


@functools.lru_cache(maxsize=64)
def _choices(mesh, scheme):
    """Puts stored transforms, too many for constants of a program, onto the devices."""
    return meshes.place_tree(scheme.choices, meshes.replicated(mesh))


@functools.lru_cache(maxsize=256)
def _shards(mesh, function, settings):
    """Compiles `function(settings, key, images, index, argument)` with images and index split over 'data'.

    An uneven batch is filled up with its last image.
    """
    whole, batch, devices = PartitionSpec(), PartitionSpec("data"), mesh.shape["data"]
    program = jax.jit(
        jax.shard_map(
            functools.partial(function, settings),
            mesh=mesh, in_specs=(whole, batch, batch, whole), out_specs=batch, check_vma=False,
        )
    )  # fmt: skip

    def even(array):
        short = -array.shape[0] % devices
        return jnp.concatenate([array, jnp.repeat(array[-1:], short, axis=0)]) if short else array

    return lambda key, images, index, argument: program(key, even(images), even(index), argument)[: images.shape[0]]
