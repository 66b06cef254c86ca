"""The search that made ImageNet-C-bar: a benchmark that lies far from a reference benchmark.

- `scans`: errors and features of every candidate at every level, one run of the search; five of ten levels of each
  candidate, and five candidates whose mean error is the target
- `selection`: random benchmarks, contributions, ranking, the choice of ten; cbar_benchmark.json
"""
