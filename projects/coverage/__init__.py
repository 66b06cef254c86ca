"""What do benchmarks of corruptions leave uncovered? Candidates of five benchmarks in one overlap study.

__main__.py    trains and evaluates the models one after another
results.py     computes the tables, the figures and docs/coverage.md from the answers
"""
