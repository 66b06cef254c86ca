"""Overlap of corruptions: does robustness to one bring robustness to another?

- `score`: gain, directed transfer and overlap of accuracies, with first-order standard errors
- `variance`: those standard errors, binomial and by the jackknife over seeds
- `bootstrap`: accuracies under resampling of the test images
- `errors`: the standard errors of a study, in its tables, its picture and its report
- `balance`: mean overlap of each corruption, and how balanced a benchmark is
- `files`: overlap.csv and overlap_long.csv
- `text`: what overlap.py prints
"""

from analysis.overlap.score import Overlap, overlap_matrix

__all__ = ["Overlap", "overlap_matrix"]
