"""The search for a benchmark that lies far from a reference benchmark, which made ImageNet-C-bar.

- `scans`: errors and features of every candidate at every level, one run of the search
- `half_sets`: five of ten levels of each candidate; five candidates whose mean error is the target
- `selection`: random benchmarks, contributions, ranking, the choice of ten; cbar_benchmark.json
"""
