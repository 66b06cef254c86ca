"""Checks that a call is refused: the type of its error, and short words of the message."""

import pytest


def refuses(call, *words, kind=ValueError):
    """Expects that a call raises an error of this type whose message holds these words; returns the message."""
    with pytest.raises(kind) as refusal:
        call()
    said = str(refusal.value)
    missing = [word for word in words if str(word) not in said]
    assert not missing, f"{missing} in {said}"
    return said
