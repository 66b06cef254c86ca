"""A progress bar where one can be shown."""

import contextlib
from collections.abc import Iterator
from typing import Any

from corruptions.write import sources


@contextlib.contextmanager
def bar(total: int, what: str, progress: bool | None) -> Iterator[Any]:
    """Shows a progress bar over images, or yields one that shows nothing."""
    if progress is False:
        yield _Silent()
        return
    try:
        tqdm = sources.require("tqdm", "a progress bar needs tqdm").tqdm
    except ModuleNotFoundError:
        if progress:
            raise
        yield _Silent()
        return
    with tqdm(
        total=total, desc=what, unit="img", unit_scale=True, disable=None if progress is None else False
    ) as shown:
        yield shown


class _Silent:
    def set_description(self, text: str) -> None:
        pass

    def update(self, count: int) -> None:
        pass
