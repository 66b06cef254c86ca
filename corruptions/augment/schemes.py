"""Augmentation schemes: their contract, their names, and the corruptions that they coincide with.

A scheme draws all randomness in `sample`, none in `apply`, for one image at a time, float32[H, W, 3] in [0, 1]; batches
live in `corruptions.augment.batch`. The params of a transform are a flat dictionary of small arrays without any image
in it, so that thousands of transforms are drawn by `vmap` over keys, stored, concatenated and indexed, and one
transform is shown to many images by `vmap(scheme.apply, (0, None))`.

Names: `augmix`, `augmix_imagenet`, `autoaugment_cifar`, `autoaugment_imagenet`, `patch_gaussian`,
`patch_gaussian_imagenet`; `augmix=rotate+equalize`, AugMix with some of its nine operations (`augmix=` with none is the
identity; also `augmix_imagenet=...`); `op=rotate`, an operation alone (also `op_imagenet=...`); `stored=FILE`, the
transforms in a file (see `stored`), canonically `stored=LABEL@DIGEST`.
"""

import dataclasses
import functools
import inspect
import itertools
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np

from corruptions.augment import augmix, autoaugment, patch_gaussian, stored
from corruptions.augment.operations import BASE, CODES, IDENTITY
from corruptions.core import checks, dispatch, registry

Params = Mapping[str, Any]

_IMAGENET = {"severity": 1.0, "whole": True}
_MIXED = ("augmix", "augmix_imagenet")
_ALONE = ("op", "op_imagenet")
_WHOLE = (*_MIXED, "autoaugment_cifar", "autoaugment_imagenet", "patch_gaussian", "patch_gaussian_imagenet")
_STORED = "stored"
_DIGESTED = re.compile(rf"{_STORED}=[^/]+@[0-9a-f]{{{stored.DIGITS}}}")

COINCIDES_WITH = {
    "autocontrast": (),
    "equalize": (),
    "posterize": ("noc/quantization",),
    "solarize": (),
    "shear_x": ("noc/shear",),
    "shear_y": ("noc/shear",),
    "translate_x": ("noc/translation",),
    "translate_y": ("noc/translation",),
    "rotate": ("noc/rotation",),
    "invert": (),
    "color": ("imagenet_c/saturate", "noc/gray_scale", "cbar/color_balance"),
    "contrast": ("imagenet_c/contrast", "noc/contrast"),
    "brightness": ("imagenet_c/brightness", "noc/brightness"),
    "sharpness": ("imagenet_c/gaussian_blur", "noc/blur"),
    "patch_gaussian": ("imagenet_c/gaussian_noise", "noc/gaussian"),
}
"""Operation -> qualified names of the corruptions that it equals but for strength.

Training with one and testing on the other measures no generalisation; for this reason AugMix leaves
out color, contrast, brightness and sharpness. Sharpness blurs at factors below 1;
`cbar/color_balance` is `color`.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Scheme:
    """A scheme and all that is known about it. Calling it augments one image.

    Attributes:
      name: the canonical name.
      operations: the operations of its transforms: names of `operations.OPERATIONS`, or `patch_gaussian`.
      sampler: `(key, shape, choices, **options) -> params`; the options are static.
      applier: `(image, params) -> image`, deterministic.
      choices: NumPy arrays for the sampler, where they may be traced; schemes that differ only in these share a
        compile.
      rounding: how values between levels become uint8: `nearest` or `truncate`.
      defaults: option -> value, where it differs from the sampler's own default.
      drawn_from: the scheme that stored transforms were drawn from; "" when the transforms are the scheme's own.
    """

    name: str
    operations: tuple[str, ...]
    sampler: Callable[..., Params]
    applier: Callable[[Any, Params], Any]
    choices: Any
    rounding: str
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    drawn_from: str = ""

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Static keyword options and their defaults."""
        signature = inspect.signature(self.sampler)
        known = {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return known | dict(self.defaults)

    def sample(self, key: jax.Array, shape: tuple[int, ...], **options: Any) -> Params:
        """Draws a transform.

        Args:
          key: a typed PRNG key.
          shape: (H, W, 3), both sides at least 16; strengths in pixels depend on it.
          **options: static options of this scheme, see `options`.

        Returns:
          A flat dictionary of small arrays, everything `apply` needs.

        Raises:
          ValueError: a shape or option that is not as described.
        """
        checks.image_shape(shape)
        checks.options(self.name, self.options, options)
        return self.sampler(dispatch.held(key), tuple(shape), self.choices, **(dict(self.defaults) | options))

    def apply(self, image: jax.Array, params: Params) -> jax.Array:
        """Applies a drawn transform to `image`, float32[H, W, 3] in [0, 1]; keeps shape and range."""
        checks.one_image(image)
        return _apply(image, params, applier=self.applier)

    def __call__(self, key: jax.Array, image: jax.Array, **options: Any) -> jax.Array:
        """Augments one image, float32[H, W, 3] in [0, 1]: `sample`, then `apply`."""
        checks.one_image(image)
        return self.apply(image, self.sample(key, image.shape, **options))

    def __repr__(self):
        return f"<Scheme {self.name}: {', '.join(self.operations) or 'identity'}>"


_apply = dispatch.program(lambda image, params, applier: applier(image, params), "applier")


@functools.cache
def _made(family: str, operations: tuple[str, ...] | None) -> Scheme:
    """Makes the scheme of a family, with AugMix's operations or some of them where the family takes any."""
    table = "imagenet" if family.endswith("imagenet") else "cifar"
    if family.startswith("autoaugment"):
        operations = autoaugment.OPERATIONS[table]
        return Scheme(family, operations, autoaugment.sample, autoaugment.apply, None, "nearest", {"table": table})
    if family.startswith("patch_gaussian"):
        halves = patch_gaussian.sample, patch_gaussian.apply
        return Scheme(family, ("patch_gaussian",), *halves, None, "truncate", {"table": table})
    operations = BASE if operations is None else operations
    sampler, applier = (augmix.sample, augmix.apply) if family in _MIXED else (augmix.sample_one, augmix.apply_one)
    name, choices = _spelled(family, operations), augmix.choices(operations)
    return Scheme(name, operations, sampler, applier, choices, "nearest", _IMAGENET if table == "imagenet" else {})


def _from_file(transforms):
    source = get(transforms.source)
    allowed = {IDENTITY, *(CODES[name] for name in source.operations if name in CODES)}
    found = np.unique(transforms.params.get("operation", np.int32(IDENTITY)))
    if found.dtype.kind not in "iu" or set(found.tolist()) - allowed:
        raise ValueError(
            f"{transforms.scheme_name}: expected codes of {source.name}'s operations, {sorted(allowed)}, as the param "
            f"'operation', found {found.tolist()}"
        )
    drawn = source.operations, stored.sample, source.applier, stored.choices(transforms), source.rounding
    return Scheme(transforms.scheme_name, *drawn, {"made_for": transforms.shape}, source.name)


def names() -> tuple[str, ...]:
    """Lists the six published schemes."""
    return _WHOLE


def subsets(family: str = "augmix") -> tuple[str, ...]:
    """Lists the canonical names of the 512 subsets of AugMix's operations, the smallest first."""
    combinations = itertools.chain.from_iterable(itertools.combinations(BASE, n) for n in range(len(BASE) + 1))
    return tuple(canonical(f"{family}={'+'.join(operations)}") for operations in combinations)


def canonical(name: str) -> str:
    """Returns the one spelling of a name: operations in the order of `operations.BASE`, all nine being plain AugMix;
    for a file of stored transforms its label and digest.

    Raises:
      ValueError: an unknown name, an unknown or repeated operation, several operations after `op=`, or a file of other
        content.
      FileNotFoundError: no such file of stored transforms.
    """
    if is_stored(name):
        return name if _DIGESTED.fullmatch(name) else get(name).name
    return _spelled(*_parse(name))


def _spelled(family, operations):
    whole = operations is None or (family in _MIXED and operations == BASE)
    return family if whole else f"{family}={'+'.join(operations)}"


def known(name: object) -> bool:
    """Tells whether `name` has the form of a scheme's name; its operations may still be wrong."""
    return isinstance(name, str) and (is_stored(name) or name.partition("=")[0] in _WHOLE + _ALONE)


def is_stored(name: object) -> bool:
    """Whether `name` stands for stored transforms: `stored=FILE` or `stored=LABEL@DIGEST`."""
    return isinstance(name, str) and name.startswith(f"{_STORED}=")


def get(name: str | Scheme) -> Scheme:
    """Returns the scheme called `name`, see the module; a `Scheme` is returned unchanged. A file is read in every
    call.

    Raises:
      ValueError, FileNotFoundError: as `canonical`; also stored transforms named only by their digest.
    """
    if isinstance(name, Scheme):
        return name
    if not is_stored(name):
        return _made(*_parse(canonical(name)))
    path = pathlib.Path(name.partition("=")[2])
    if _DIGESTED.fullmatch(name) and not path.exists():
        raise ValueError(f"expected {_STORED}=FILE, which says where the transforms are, found {name!r}")
    return _from_file(stored.read(path))


def _parse(name):
    """(family, operations in order), or (name, None) for a published scheme."""
    if not isinstance(name, str):
        raise ValueError(f"expected the name of an augmentation scheme, found {name!r}")
    family, equals, listed = name.partition("=")
    if not equals and name in _WHOLE:
        return name, None
    if not equals or family not in _MIXED + _ALONE:
        forms = (*_WHOLE, *(f"{family}=" for family in (*_MIXED, *_ALONE)))
        checks.one_of("name", "an augmentation scheme", name, forms)
    operations = [part.strip() for part in listed.split("+")] if listed.strip() else []
    for operation in operations:
        checks.one_of("name", f"an operation of {family}=", operation, BASE)
    if len(set(operations)) != len(operations):
        raise ValueError(f"expected every operation once, found {name!r}")
    if family in _ALONE and len(operations) != 1:
        raise ValueError(f"expected one operation after {family}=, found {name!r}")
    return family, tuple(operation for operation in BASE if operation in operations)


def coinciding(scheme_name: str, corruption_names: Iterable[str]) -> list[tuple[str, str]]:
    """Lists the pairs (operation of the scheme, qualified name of a corruption) that are the same transform.

    They come in the order of the scheme's operations and then of the corruptions, which may have any spelling that
    `corruptions.get` knows. Raises ValueError for an unknown scheme or corruption.
    """
    qualified = [registry.get(name).qualified_name for name in corruption_names]
    operations = get(scheme_name).operations
    return [(operation, name) for operation in operations for name in qualified if name in COINCIDES_WITH[operation]]
