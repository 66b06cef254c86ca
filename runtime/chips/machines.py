"""Several chips by the name they are rented under."""

import dataclasses
import re

from runtime.chips.targets import TARGETS, Target

# Name: (key of TARGETS, what its number counts for each chip, the most chips of one host)
_KINDS = {"v5e": ("tpu_v5e", 1, 8), "v4": ("tpu_v4", 2, 4), "h200": ("h200", 1, 8)}


@dataclasses.dataclass(frozen=True)
class Machine:
    """Chips that work together.

    Attributes:
      name: as given.
      target: the kind of chip.
      chips: how many; JAX has a device of each.
      one_host: whether one process drives all of them.
    """

    name: str
    target: Target
    chips: int
    one_host: bool


def find(name: str) -> Machine:
    """Finds a machine by its name: v5e-8 and h200-8 have 8 chips, v4-32 has 32 cores, 16 chips.

    Raises:
      ValueError: another name, or a number of chips that no described machine has.
    """
    match = re.fullmatch(r"(\w+)-(\d+)", name)
    if not match or match[1] not in _KINDS:
        raise ValueError(f"expected --devices of {', '.join(map(_choices, _KINDS))}, found {name!r}")
    key, counted, of_host = _KINDS[match[1]]
    chips, rest = divmod(int(match[2]), counted)
    if rest or chips not in TARGETS[key].topologies:
        raise ValueError(f"expected --devices of {_choices(match[1])}, found {name!r}")
    return Machine(name, TARGETS[key], chips, chips <= of_host)


def _choices(kind):
    key, counted, _ = _KINDS[kind]
    return ", ".join(f"{kind}-{counted * chips}" for chips in TARGETS[key].topologies)
