"""Classifiers under corruptions: `evaluate`, for any function from images to logits.

conditions   corruptions at severities, as names and a text ask for them
classifier   `evaluate`: images, conditions and a classifier's answers put together
folder       counts, mean errors, the answers that a folder keeps, and the tables from them
"""

from corruptions.scoring.classifier import evaluate
from corruptions.scoring.folder import Count, mean_error

__all__ = ["Count", "evaluate", "mean_error"]
