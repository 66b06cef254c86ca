"""The types of `corruptions.core.errors`: the line of each, and its fields after a pickle."""

import pickle

import pytest

from corruptions.core.errors import MissingAssets, Refused, RefusedType, UnknownCorruption

GOLDEN = [
    (Refused("severity", "a severity level 1..5", 6), "expected a severity level 1..5, found 6"),
    (RefusedType("images", "uint8 images", "int32", "images.astype(numpy.uint8)").at("noc/hue").at("image 3"),
     "image 3: noc/hue: expected uint8 images, found int32; images.astype(numpy.uint8)"),
    (UnknownCorruption("name", "a registered corruption", "'fgo'", "did you mean 'fog'?"),
     "expected a registered corruption, found 'fgo'; did you mean 'fog'?"),
    (MissingAssets("bank", "a bank", "none", "read one"), "expected a bank, found none; read one"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text"), GOLDEN, ids=lambda value: type(value).__name__)
def test_an_error_is_one_line_and_passes_between_processes(error, text):
    assert str(error) == text and isinstance(error, ValueError)
    assert isinstance(error, TypeError) == isinstance(error, RefusedType)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), text, vars(error))
