"""The search for a benchmark that lies far from a reference benchmark, which made ImageNet-C-bar.

- `scans`: files of a severity scan, errors and features of every candidate at every level
- `join`: one run of a scan from the results of eval.py and tools.msd, the command tools.join_scan
- `groups`: five of ten levels of each candidate, with their error and distance
- `half_sets`: five candidates whose mean error is the target
- `selection`: random benchmarks, contributions, ranking, the choice of ten
- `benchmark`: cbar_benchmark.json, the command tools.select_cbar
"""
