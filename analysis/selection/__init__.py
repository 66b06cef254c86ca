"""Selection of a benchmark from a measured overlap matrix, and the studies around it.

- `algorithm`: Algorithm 1, its threshold sweep, its stability under resampling
- `cliques`: maximum cliques on bitmasks, which Algorithm 1 needs
- `benchmark`: benchmark.json and coverage.json, written and printed; the command select_noc.py
- `coverage`: which corruptions outside a benchmark it covers, with p values
- `categories`: clusters of corruptions with similar overlaps
- `nk_benchmarks`: random benchmarks of given size and balance
"""

from analysis.selection.algorithm import select

__all__ = ["select"]
