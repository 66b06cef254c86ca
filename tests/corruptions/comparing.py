"""Compares one image in other batches and programs, by the promises of `corrupt`."""

import numpy as np

A_THOUSANDTH_OF_A_LEVEL = 1e-3 / 255


def assert_same(found, expected, bound=A_THOUSANDTH_OF_A_LEVEL):
    """Compares results of two batch sizes, pieces, numbers of devices or surrounding programs, by
    the promises of `corrupt`; `bound` is for float32.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    different = np.abs(found.astype(np.float64) - expected)
    said = f"{np.count_nonzero(different)} of {different.size} values differ, by up to {different.max()}"
    if found.dtype == np.uint8:  # as rounding falls on the two sides of a border between levels
        assert different.max() <= 1 and np.count_nonzero(different) <= max(1, different.size / 10_000), said
    else:
        assert np.count_nonzero(different > bound) <= different.size / 1000, said
