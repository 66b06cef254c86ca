"""Tables of models made up here, for the tests of natural shifts."""

import numpy as np

from analysis.natural_shift.benchmarks import IMAGENET_C_CATEGORIES
from analysis.natural_shift.table import Shift, Table


def sigmoid(x):
    return 100 / (1 + np.exp(-x))


def made_up(number=24, seed=0):
    """Models of which the first half is standard: ImageNet-R follows a line in logits, others
    exceed it by as much as they exceed that of the corruptions.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2, number)  # logit of clean accuracy
    standard = np.arange(number) < number // 2
    extra = np.where(standard, 0, rng.uniform(0, 1, number))
    names = [f"imagenet_c/{name}" for cluster in IMAGENET_C_CATEGORIES for name in cluster]
    synthetic = {name: sigmoid(0.8 * x - 1 + extra + rng.normal(0, 0.2, number)) for name in names}
    natural = {
        "imagenet_r": Shift(sigmoid(0.6 * x - 2 + extra), sigmoid(x)),
        "imagenet_v2": Shift(sigmoid(0.9 * x - 0.5 + rng.normal(0, 0.1, number)), sigmoid(x)),
    }
    models = tuple(f"model{i}" for i in range(number))
    return Table("made up", models, sigmoid(x), natural, synthetic, standard, ~standard)
