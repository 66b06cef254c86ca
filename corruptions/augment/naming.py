"""Names of the augmentation schemes.

`augmix`, `augmix_imagenet`, `autoaugment_cifar`, `autoaugment_imagenet`, `patch_gaussian`,
`patch_gaussian_imagenet`; `augmix=rotate+equalize`, AugMix with some of its nine operations
(`augmix=` with none is the identity; also `augmix_imagenet=...`); `op=rotate`, an operation alone
(also `op_imagenet=...`); `stored=FILE`, the transforms in a file (`corruptions.augment.stored`),
canonically `stored=LABEL@DIGEST`.
"""

import functools
import itertools
import pathlib
import re

from corruptions import checks
from corruptions.augment import augmix, autoaugment, patch_gaussian, stored
from corruptions.augment.operations import BASE
from corruptions.augment.scheme import Scheme

_IMAGENET = {"severity": 1.0, "whole": True}
_MIXED = {"augmix": {}, "augmix_imagenet": _IMAGENET}
_ALONE = {"op": {}, "op_imagenet": _IMAGENET}
_STORED = "stored"
_DIGESTED = re.compile(rf"{_STORED}=[^/]+@[0-9a-f]{{{stored.DIGITS}}}")


def _mixed(family, operations):
    name = family if operations == BASE else f"{family}={'+'.join(operations)}"
    choices = augmix.choices(operations)
    return Scheme(name, operations, augmix.sample, augmix.apply, choices, "nearest", _MIXED[family])


def _alone(family, operations):
    choices = augmix.choices(operations)
    return Scheme(
        f"{family}={operations[0]}", operations, augmix.sample_one, augmix.apply_one, choices, "nearest", _ALONE[family]
    )


def _autoaugment(table):
    operations = autoaugment.OPERATIONS[table]
    options = {"table": table}
    return Scheme(f"autoaugment_{table}", operations, autoaugment.sample, autoaugment.apply, None, "nearest", options)


def _patch_gaussian(name, table):
    return Scheme(
        name, ("patch_gaussian",), patch_gaussian.sample, patch_gaussian.apply, None, "truncate", {"table": table}
    )


def _from_file(transforms):
    source = get(transforms.source)
    choices, defaults = stored.choices(transforms), {"made_for": transforms.shape}
    return Scheme(
        transforms.scheme_name,
        source.operations,
        stored.sample,
        source.applier,
        choices,
        source.rounding,
        defaults,
        source.name,
    )


_WHOLE = {
    "augmix": lambda: _mixed("augmix", BASE),
    "augmix_imagenet": lambda: _mixed("augmix_imagenet", BASE),
    "autoaugment_cifar": lambda: _autoaugment("cifar"),
    "autoaugment_imagenet": lambda: _autoaugment("imagenet"),
    "patch_gaussian": lambda: _patch_gaussian("patch_gaussian", "cifar"),
    "patch_gaussian_imagenet": lambda: _patch_gaussian("patch_gaussian_imagenet", "imagenet"),
}


def names() -> tuple[str, ...]:
    """Lists the six published schemes."""
    return tuple(_WHOLE)


def subsets(family: str = "augmix") -> tuple[str, ...]:
    """Lists the canonical names of the 512 subsets of AugMix's operations, the smallest first."""
    combinations = itertools.chain.from_iterable(itertools.combinations(BASE, n) for n in range(len(BASE) + 1))
    return tuple(canonical(f"{family}={'+'.join(operations)}") for operations in combinations)


def canonical(name: str) -> str:
    """Returns the one spelling of a name: operations in the order of `operations.BASE`, all nine
    being plain AugMix; for a file of stored transforms its label and digest.

    Raises:
      ValueError: an unknown name, an unknown or repeated operation, several operations after `op=`,
        or a file of other content.
      FileNotFoundError: no such file of stored transforms.
    """
    if is_stored(name):
        return name if _DIGESTED.fullmatch(name) else get(name).name
    family, operations = _parse(name)
    if operations is None or (family in _MIXED and operations == BASE):
        return family
    return f"{family}={'+'.join(operations)}"


def known(name: object) -> bool:
    """Tells whether `name` reads as that of a scheme; its operations may still be wrong."""
    return isinstance(name, str) and (is_stored(name) or name.partition("=")[0] in _WHOLE | _MIXED | _ALONE)


def is_stored(name: object) -> bool:
    """Tells whether `name` stands for stored transforms: `stored=FILE` or `stored=LABEL@DIGEST`."""
    return isinstance(name, str) and name.startswith(f"{_STORED}=")


def get(name: str | Scheme) -> Scheme:
    """Returns the scheme called `name`, see the module, or the `Scheme` that it is given. A file is
    read anew in every call.

    Raises:
      ValueError, FileNotFoundError: as `canonical`; stored transforms by their digest alone.
    """
    if isinstance(name, Scheme):
        return name
    if not is_stored(name):
        return _get(canonical(name))
    path = pathlib.Path(name.partition("=")[2])
    if _DIGESTED.fullmatch(name) and not path.exists():
        raise ValueError(f"expected {_STORED}=FILE, which says where the transforms are, found {name!r}")
    return _from_file(stored.read(path))


@functools.cache
def _get(name):
    family, operations = _parse(name)
    if operations is None:
        return _WHOLE[family]()
    return (_mixed if family in _MIXED else _alone)(family, operations)


def _parse(name):
    """(family, operations in order), or (name, None) for a published scheme."""
    if not isinstance(name, str):
        raise ValueError(f"expected the name of an augmentation scheme, found {name!r}")
    family, equals, listed = name.partition("=")
    if not equals and name in _WHOLE:
        return name, None
    if not equals or family not in _MIXED | _ALONE:
        forms = (*_WHOLE, *(f"{family}=" for family in (*_MIXED, *_ALONE)))
        raise ValueError(
            f"unknown augmentation scheme {name!r}{checks.suggest(name, forms)}; known: {', '.join(forms)}"
        )
    operations = [part.strip() for part in listed.split("+")] if listed.strip() else []
    for operation in operations:
        if operation not in BASE:
            suggestion = checks.suggest(operation, BASE)
            raise ValueError(f"unknown operation {operation!r} in {name!r}{suggestion}; known: {', '.join(BASE)}")
    if len(set(operations)) != len(operations):
        raise ValueError(f"expected every operation once, found {name!r}")
    if family in _ALONE and len(operations) != 1:
        raise ValueError(f"expected one operation after {family}=, found {name!r}")
    return family, tuple(operation for operation in BASE if operation in operations)
