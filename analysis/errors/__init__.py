"""Errors of models on benchmarks, and the reference that they are divided by.

- `conditions`: dataset, size, preprocessing, tables, ranges, levels and frost that errors were measured under
- `reference`: errors of a model under such conditions, and which reference an evaluation takes
- `scores`: mean error, CE and relative CE of a model on the benchmarks that its answers hold completely
- `summary`: errors.csv, errors_summary.csv, and the same printed
- `significance`: differences between models on the same images, corrected for their number
- `joint`: several models and benchmarks in one table
- `sets`: means over sets of corruptions, the balance of a benchmark
"""
