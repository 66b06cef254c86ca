"""One progress bar for every long command."""

from tqdm import tqdm

from runtime import distributed


def bar(unit, items=None, total=None):
    """A bar that counts `unit`s, over `items` or up to `total`; of many processes only the first shows it."""
    hidden = not distributed.is_main()
    return tqdm(items, total=total, desc=f"{unit}s", unit=unit, dynamic_ncols=True, disable=hidden)
