"""Published tables, as printed, for the tests of `analysis`.

S3: "Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions" (Laugros,
Caplier, Ospici). S1: "Using the Overlapping Score to Improve Corruption Benchmarks" (arXiv 2105.12357). S4:
"Benchmarking the Corruption and Structural Robustness of Neural Networks" (Hendrycks, Dietterich; early ImageNet-C
manuscript). CE rows are relative CE in percent unless a comment says raw.
"""

import numpy as np

from analysis.errors.printed import PRINTED

IMAGENET_C = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform",
    "pixelate", "jpeg_compression",
)  # fmt: skip
NOC = (
    "quantization", "blur", "vertical_artifacts", "rain", "border", "shear", "brightness", "hue",
)  # fmt: skip


def _table(source, benchmark, values=slice(None)):
    """(models, numbers) of a table of `analysis.errors.printed`: clean error, each corruption, printed mean."""
    of = next(t for t in PRINTED if t.source.endswith(f", {source}") and t.benchmark == benchmark)
    return tuple(of.rows), np.array([row[values] for row in of.rows.values()], float)


# S3 Table 7: model trained with the row, tested on the column; clean error first, printed mCE last. Table 8, the same
# for ImageNet-NOC.
TABLE7_ROWS, TABLE7 = _table("Table 7", "imagenet_c")
TABLE8_ROWS, TABLE8 = _table("Table 8", "imagenet_noc")
TABLE7[:, 0] /= 100
TABLE8[:, 0] /= 100
# S3 Table 4 (robust ResNet-50): eight relative CE, printed INOC mCE, IC mCE (raw).
TABLE4_ROWS, TABLE4 = _table("Table 4", "imagenet_noc", slice(1, None))
TABLE4 = np.hstack([TABLE4, _table("Table 4", "imagenet_c", slice(-1, None))[1]])

# S4 Table 1, ResNet-50: clean error, raw CE per corruption, printed mCE 76.7; the relative CE row of the same network
# is TABLE5's resnet50, printed relative mCE 105.0.
RESNET50_CLEAN = 0.239
RESNET50_RAW = np.array([80, 82, 83, 75, 89, 78, 80, 78, 75, 66, 57, 71, 85, 77, 77], float)

# S1 Table 1, ResNet-50: raw mean CE of Set1 (noises, blurs, pixelate) and of Set2 (the rest).
SET1 = (*IMAGENET_C[:7], "pixelate")
SET2 = tuple(name for name in IMAGENET_C if name not in SET1)

# S3 Table 2: mCE of models each trained with one corruption, in the order of IMAGENET_C and NOC.
TABLE2A = np.array([71, 71, 71, 54, 56, 63, 68, 83, 79, 86, 89, 78, 92, 85, 94], float)
TABLE2B = np.array([83, 79, 83, 83, 81, 90, 79, 88], float)

# Mean AlexNet errors of S4 (appendix C), in the order of IMAGENET_C, and the clean error.
ALEXNET_S4 = np.array([
    0.886, 0.894, 0.923, 0.820, 0.826, 0.786, 0.798, 0.867, 0.827, 0.819, 0.565, 0.853, 0.646,
    0.718, 0.607,
])  # fmt: skip
# AlexNet errors published with the candidate corruptions (bds-ailab/common_corruption_benchmark, settings.py of the
# NOC commit), in the order of NOC.
ALEXNET_NOC = np.array([0.592, 0.570, 0.758, 0.748, 0.670, 0.657, 0.577, 0.684])
ALEXNET_CLEAN = 0.435


def accuracies(table, reference, names):
    """Accuracies [1+n, 1+n] (clean first) behind a printed table of relative CE.

    error = clean + CE / 100 * (reference error - reference clean error), accuracy = 1 - error.
    """
    clean = table[:, 0]
    errors = clean[:, None] + table[:, 1 : 1 + len(names)] / 100 * (reference - ALEXNET_CLEAN)
    return 1 - np.concatenate([clean[:, None], errors], axis=1)


def by_definition(full, raw=False):
    """The overlap score as the paper words it, one pair at a time."""
    n = len(full) - 1

    def r(m, c):
        return full[m, c] if raw else full[m, c] / full[m, 0]

    def t(i, j):
        return (r(i, j) - r(0, j)) / (r(j, j) - r(0, j))

    return np.array([[(t(i, j) + t(j, i)) / 2 for j in range(1, n + 1)] for i in range(1, n + 1)])


# Overlap matrix of S3 Fig. 3 (an image in the paper), recovered from Table 7 and rounded to two decimals.
FIGURE3 = np.round(np.maximum(by_definition(accuracies(TABLE7, ALEXNET_S4, IMAGENET_C)), 0), 2)
# The non-zero pairs of ImageNet-NOC, recovered from Table 8.
NOC_PAIRS = {
    ("quantization", "hue"): 0.07,
    ("rain", "vertical_artifacts"): 0.07,
    ("quantization", "vertical_artifacts"): 0.06,
    ("quantization", "brightness"): 0.06,
    ("blur", "vertical_artifacts"): 0.06,
    ("shear", "vertical_artifacts"): 0.06,
    ("quantization", "blur"): 0.04,
}

# Algorithm 1 on FIGURE3: threshold -> (size, number of maximum sets, winners, mean overlap).
ALGORITHM1 = {
    0.10: (3, 21, [{"fog", "elastic_transform", "jpeg_compression"},
                   {"brightness", "elastic_transform", "jpeg_compression"}], 0.0),
    0.20: (5, 10, [{"snow", "brightness", "contrast", "elastic_transform",
                    "jpeg_compression"}], 0.054),
    0.30: (6, 6, [{"defocus_blur", "snow", "brightness", "contrast", "elastic_transform",
                   "jpeg_compression"}], 0.076),
    0.50: (8, 20, [{"defocus_blur", "snow", "frost", "fog", "brightness", "contrast",
                    "elastic_transform", "jpeg_compression"}], 0.134),
    0.60: (10, 9, [{"shot_noise", "zoom_blur", "snow", "frost", "fog", "brightness", "contrast",
                    "elastic_transform", "pixelate", "jpeg_compression"}], 0.174),
}  # fmt: skip
