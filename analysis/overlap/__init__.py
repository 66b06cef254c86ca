"""Overlap of corruptions: does robustness to one bring robustness to another?

- `score`: gain, directed transfer and overlap of accuracies, with first-order standard errors; balance of a benchmark
- `uncertainty`: standard errors of a study, by resampling test images
- `study`: an overlap study from its answers, its tables and pictures; gains of models trained on whole benchmarks
- `measured`: the overlaps that a selection takes, from a study or from a user's files
- `agreement`: do the matrices of several studies agree?
"""

from analysis.overlap.score import Overlap, overlap_matrix

__all__ = ["Overlap", "overlap_matrix"]
