"""Channels: corruptions are made for three; grey is shown to them as three, alpha is not, and more
go only through those that treat each channel alone.
"""

from typing import Any

_GREEN = slice(1, 2)


def _as_it_is(number):
    """Whether a corruption sees this number of channels unchanged: neither grey nor with alpha."""
    return number == 3 or number > 4


def seen(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape (H, W, C) that a corruption sees of an image: C is 3 for 1 (grey), 2 (grey and
    alpha) and 4 (RGB and alpha) channels.
    """
    return shape if _as_it_is(shape[-1]) else (*shape[:-1], 3)


def shown(image: Any) -> Any:
    """Shows an image [..., C] as a corruption sees it: without alpha, grey as three equal channels.

    Args:
      image: an array of NumPy or JAX, which the result is too.
    """
    number = image.shape[-1]
    if _as_it_is(number):
        return image
    if number == 4:
        return image[..., :3]
    return image.__array_namespace__().broadcast_to(image[..., :1], seen(image.shape))


def restored(corrupted: Any, image: Any) -> Any:
    """Gives what was corrupted as `shown` the channels of the image: grey is the green one, alpha
    is the image's own.

    Noise that is drawn for each channel keeps its strength in one of them, which a mean would take
    from it; of a tint green is nearest to the luminance.
    """
    number = image.shape[-1]
    if _as_it_is(number):
        return corrupted
    kept = corrupted if number == 4 else corrupted[..., _GREEN]
    return kept if number == 1 else kept.__array_namespace__().concatenate([kept, image[..., -1:]], -1)


def check(name: str, mixes: str, number: int) -> None:
    """Refuses more than four channels where a corruption mixes them.

    Args:
      name, mixes: see `Corruption`.
      number: of channels.

    Raises:
      ValueError: more than four channels, and `mixes` says why that is not possible.
    """
    if mixes and number > 4:
        raise ValueError(f"expected 1 to 4 channels for {name}, which {mixes}; found {number}")
