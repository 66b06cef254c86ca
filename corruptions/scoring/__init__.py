"""Evaluates classifiers under corruptions: `evaluate` takes any function from images to logits.

conditions   corruptions at severities, as names and a text ask for them
test_set     images, labels and identities, in memory or as batches
predict      a classifier: from images to per-image results
classifier   `evaluate`: a classifier on a test set under conditions
values       means over images with standard errors, and the reference that divides them
ce           `ce_table`: errors, CE and mCE relative to AlexNet or to another classifier
counts       counts of correct answers, and their means
results      the file of per-image results under a condition, which eval.py and overlap.py write too
sealed       arrays with a record of their origin, and the sha256 of both
folder       the folder of these files, for one classifier, and the tables from them
reuse        whether stored results are those that a call would compute
"""

from corruptions.scoring.ce import ce_table
from corruptions.scoring.classifier import evaluate
from corruptions.scoring.counts import Count, mean_error
from corruptions.scoring.predict import Classifier
from corruptions.scoring.test_set import TestSet

__all__ = ["Classifier", "Count", "TestSet", "ce_table", "evaluate", "mean_error"]
