"""Classifiers under corruptions: `evaluate`, for any function from images to logits.

conditions   corruptions at severities, as names and a text ask for them
answering    which images a classifier answers correctly under each condition
counts       the correct answers to a condition, and mean errors over conditions
classifier   `evaluate`: images, conditions and answers put together
folder       answers that a folder keeps, and the tables derived from them
"""

from corruptions.scoring.classifier import evaluate
from corruptions.scoring.counts import Count, mean_error

__all__ = ["Count", "evaluate", "mean_error"]
