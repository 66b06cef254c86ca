"""Evaluates classifiers under corruptions: `evaluate` takes any function from images to logits.

conditions   corruptions at severities, as names and a text ask for them
classifier   `evaluate`: images, conditions and a classifier's answers put together
ce           `ce_table`: errors, CE and mCE relative to AlexNet or to another classifier
folder       counts, mean errors, the answers that a folder keeps, and the tables from them
"""

from corruptions.scoring.ce import ce_table
from corruptions.scoring.classifier import evaluate
from corruptions.scoring.counts import Count, mean_error

__all__ = ["Count", "ce_table", "evaluate", "mean_error"]
