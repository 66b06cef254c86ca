"""Over which images BatchNorm takes its statistics: a whole batch, or parts as on separate devices.

* `synchronised`: mean and variance of the whole batch, whatever the number of devices, which only
  changes rounding.
* `per_device`: each device that shares a model's batch normalises its part by the part's own
  statistics, as data-parallel training of the papers' time does. The result then depends on the
  number of devices, so a run's own config says `groups=G`, G the devices it began with; on another
  number it is continued only if asked for as `groups=G`.
* `running`: none; images are normalised by the running statistics, as in evaluation, and these stay
  as they are.
* `groups=G`: G equal parts of consecutive images, on any number of devices (Hoffer et al., 2017:
  ghost batch norm).

In the other cases one set of running statistics is stored and used in evaluation: the mean over
the parts of each part's mean and of each part's unbiased variance goes into the running average.
"""

SYNCHRONISED = "synchronised"
PER_DEVICE = "per_device"
RUNNING = "running"
_GROUPS = "groups="


def canonical(setting: str, devices: int) -> str:
    """Spells a setting independently of the devices: `synchronised`, `groups=G` or `running`.

    Args:
      setting: `synchronised`, `per_device`, `groups=G` or `running`.
      devices: number of devices that share a model's batch.

    Raises:
      ValueError: another setting.
    """
    if setting == RUNNING:
        return RUNNING
    number = devices if setting == PER_DEVICE else groups(setting)
    return SYNCHRONISED if number == 1 else f"{_GROUPS}{number}"


def groups(setting: str) -> int:
    """Counts the parts of a batch with statistics of their own, from a canonical setting; 0 where no
    statistics are taken.

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
