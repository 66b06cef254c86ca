"""Selection of a benchmark from a measured overlap matrix, and the studies around it.

- `algorithm`: Algorithm 1 by maximum cliques, its threshold sweep, its stability under resampling
- `benchmark`: benchmark.json and coverage.json, written and printed; the command select_noc.py. Which corruptions a
  benchmark covers, with p values
- `nk_benchmarks`: categories, clusters of corruptions with similar overlaps; random benchmarks of a chosen size and balance
"""

from analysis.selection.algorithm import select

__all__ = ["select"]
