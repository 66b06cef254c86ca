"""Errors of models on benchmarks, and the reference that they are divided by.

- `reference`: the conditions of errors (dataset, size, preprocessing, tables, ranges, levels, frost); references, and which
  reference an evaluation takes
- `scores`: mean error, CE and relative CE of a model on the benchmarks that its answers hold completely; mCE and mRR of
  camera benchmarks
- `summary`: errors.csv, errors_summary.csv, and the same printed; differences between models on the same images
- `joint`: several models and benchmarks in one table
- `sets`: a table with a column for each corruption, means over sets of corruptions, the balance of a benchmark
- `printed`: the tables that papers print with a column for each corruption
"""
