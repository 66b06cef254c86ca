"""Overlap matrices of published tables and of others, the overlap score written from its definition, names of members."""

import numpy as np

from analysis import frames
from analysis.overlap import overlap_matrix
from analysis.overlap.measured import matrix_frame, pairs_frame, read_overlap
from analysis.selection.benchmark import select_benchmark
from tests.analysis import published
from tests.analysis.published import IMAGENET_C, NOC

OFF = np.triu_indices


def imagenet_c(**options):
    """The overlaps of Table 7."""
    return _of_table(published.TABLE7, published.ALEXNET_S4, IMAGENET_C, **options)


def noc(**options):
    """The overlaps of Table 8."""
    return _of_table(published.TABLE8, published.ALEXNET_NOC, NOC, **options)


def _of_table(table, alexnet, names, raw=False, **options):
    """With `raw`, computed from accuracies instead of robustness."""
    full = published.accuracies(table, alexnet, names)
    return overlap_matrix(full[:, 1:], np.ones(len(full)) if raw else full[:, 0], names=names, **options)


def by_definition(full, raw=False):
    """The overlap score as the paper words it, one pair at a time."""
    n = len(full) - 1

    def r(m, c):
        return full[m, c] if raw else full[m, c] / full[m, 0]

    def t(i, j):
        return (r(i, j) - r(0, j)) / (r(j, j) - r(0, j))

    return np.array([[(t(i, j) + t(j, i)) / 2 for j in range(1, n + 1)] for i in range(1, n + 1)])


def write_overlap(path, names, matrix):
    """Writes overlap.csv."""
    frames.write(path, matrix_frame(names, matrix))


def write_pairs(path, found):
    """Writes overlap_long.csv of an `Overlap`."""
    frames.write(path, pairs_frame(found, found.se, "test images only"))


def select_from(path, threshold, strict=False, *, out=None, coverage=None, **options):
    """Selects from a matrix on disk as select_noc.py does."""
    kept, out = coverage is not None and out is None, out or path.with_name("benchmark.json")
    return select_benchmark(read_overlap(path), out, threshold, strict, kept=kept, coverage=coverage, **options)


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T + np.eye(len(values))


def label(n):
    return tuple(f"c{i:02d}" for i in range(n))


def indices(found, names):
    return tuple(names.index(name) for name in found)
