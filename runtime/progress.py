"""One progress bar for every long command."""

from collections.abc import Iterable

from tqdm import tqdm

from runtime import distributed


def bar(unit: str, items: Iterable | None = None, total: int | None = None) -> tqdm:
    """Returns a bar that counts `unit`s, over `items` or up to `total`; of many processes only the
    first shows it, and only on a terminal.
    """
    return tqdm(items, total=total, desc=f"{unit}s", unit=unit, dynamic_ncols=True, disable=hidden())


def hidden() -> bool | None:
    """What tqdm takes as `disable`: None hides a bar that is not on a terminal, from which it would
    fill a file.
    """
    return None if distributed.is_main() else True
