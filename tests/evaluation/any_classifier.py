"""`eval.evaluate` by the keywords of version 0.2."""

import pytest

import eval as script


def evaluate(predict, images, labels, **given):
    """Evaluates a function from images to logits; `name` is that of the classifier."""
    with pytest.warns(FutureWarning, match=r"Classifier\(predict\), TestSet\(images, labels\)"):
        return script.evaluate(predict, images, labels, **given)
