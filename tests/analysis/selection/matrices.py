"""Matrices to select from, and how members of them are named."""

import numpy as np

from tests.analysis import published

FIGURE3 = published.FIGURE3[:, :15]
OFF = np.triu_indices


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T + np.eye(len(values))


def label(n):
    return tuple(f"c{i:02d}" for i in range(n))


def indices(found, names):
    return tuple(names.index(name) for name in found)
