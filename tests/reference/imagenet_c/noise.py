"""The noises of ImageNet-C by NumPy and SciPy, given what was drawn, with the published levels."""

import numpy as np
from scipy import stats

TABLES = {
    "gaussian_noise": {
        "cifar": (0.04, 0.06, 0.08, 0.09, 0.10),
        "tiny": (0.04, 0.08, 0.12, 0.15, 0.18),
        "imagenet": (0.08, 0.12, 0.18, 0.26, 0.38),
        "inception": (0.09, 0.13, 0.19, 0.27, 0.40),
    },
    "speckle_noise": {
        "cifar": (0.06, 0.1, 0.12, 0.16, 0.2),
        "tiny": (0.15, 0.2, 0.25, 0.3, 0.35),
        "imagenet": (0.15, 0.2, 0.35, 0.45, 0.6),
        "inception": (0.16, 0.21, 0.36, 0.46, 0.61),
    },
    "shot_noise": {
        "cifar": (500, 250, 100, 75, 50),
        "tiny": (250, 100, 50, 30, 15),
        "imagenet": (60, 25, 12, 5, 3),
        "inception": (50, 20, 10, 5, 3),
    },
    "impulse_noise": {
        "cifar": (0.01, 0.02, 0.03, 0.05, 0.07),
        "tiny": (0.01, 0.02, 0.05, 0.08, 0.14),
        "imagenet": (0.03, 0.06, 0.09, 0.17, 0.27),
        "inception": (0.04, 0.07, 0.10, 0.18, 0.28),
    },
}


def reference(name, x, params):
    """Float64 levels before truncation, from the drawn parameters."""
    p = {k: np.asarray(v) for k, v in params.items()}
    if name == "gaussian_noise":
        y = x + p["noise"]
    elif name == "speckle_noise":
        y = x + x * p["noise"]
    elif name == "shot_noise":
        c = float(p["photons"])
        y = np.maximum(stats.poisson.ppf(p["uniform"].astype(np.float64), c * x), 0) / c
    else:
        y = np.where(p["flip"], np.where(p["salt"], 1.0, 0.0), x)
    return 255 * np.clip(y, 0, 1)
