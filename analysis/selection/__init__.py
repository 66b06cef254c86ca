"""Selection of a benchmark from a measured overlap matrix: Algorithm 1 and the studies around it."""

from analysis.selection.algorithm import select

__all__ = ["select"]
