"""One progress bar for every long command."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

from runtime import distributed


def bar(unit: str, items: Iterable | None = None, total: int | None = None, **options: Any) -> tqdm:
    """Returns a bar that counts `unit`s, over `items` or up to `total`; of many processes only the
    first shows it, and only on a terminal: elsewhere it would fill a file. `options` are tqdm's.
    """
    shown = {"desc": f"{unit}s", "dynamic_ncols": True} | options
    return tqdm(items, total=total, unit=unit, disable=None if distributed.is_main() else True, **shown)
