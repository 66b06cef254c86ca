"""Overlap of corruptions: the score, its files, its errors, balance of a benchmark."""

from analysis.overlap.score import Overlap, overlap_matrix

__all__ = ["Overlap", "overlap_matrix"]
