"""Published tables, as printed, for the tests of `analysis`.

S3: "Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions" (Laugros,
Caplier, Ospici). S1: "Using the Overlapping Score to Improve Corruption Benchmarks" (arXiv 2105.12357). S4:
"Benchmarking the Corruption and Structural Robustness of Neural Networks" (Hendrycks, Dietterich; early ImageNet-C
manuscript). CE rows are relative CE in percent unless a comment says raw.
"""

import numpy as np

from analysis.errors.printed import PRINTED


def _rows(text, dtype=float):
    """Split a block of 'label v v v' lines into labels and an array."""
    lines = [line.split() for line in text.strip().splitlines()]
    return tuple(line[0] for line in lines), np.array([line[1:] for line in lines], dtype)


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

# S4 Table 1, ResNet-50: clean error, and raw CE of each corruption in the order of IMAGENET_C; printed mCE 76.7.
RESNET50_CLEAN = 0.239
RESNET50_RAW = np.array([80, 82, 83, 75, 89, 78, 80, 78, 75, 66, 57, 71, 85, 77, 77], float)

# The corruptions of S1 Table 1: Set1 (noises, blurs, pixelate), and Set2 (the rest).
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

# Overlap matrix of S3 Fig. 3 (an image in the paper), recovered from Table 7 by hand calculation and rounded to two
# decimals; last column the off-diagonal mean.
FIGURE3_ROWS, _NUMBERS = _rows("""
gaussian_noise 1 .97 .96 .32 .32 .19 .14 .06 .11 0 0 .02 .11 .50 .60 .31
shot_noise .97 1 .96 .30 .30 .17 .13 .07 .09 0 0 0 .09 .49 .58 .30
impulse_noise .96 .96 1 .30 .32 .19 .13 .02 .10 0 0 0 .14 .50 .60 .30
defocus_blur .32 .30 .30 1 .85 .68 .66 .19 .23 .09 0 .10 .28 .58 .03 .33
glass_blur .32 .30 .32 .85 1 .73 .69 .19 .26 .08 .01 .11 .47 .67 .02 .36
motion_blur .19 .17 .19 .68 .73 1 .79 .24 .14 .20 .01 .16 .39 .56 .01 .32
zoom_blur .14 .13 .13 .66 .69 .79 1 .13 .14 .21 0 .15 .42 .44 .01 .29
snow .06 .07 .02 .19 .19 .24 .13 1 .47 .10 .11 .04 .18 .28 .02 .15
frost .11 .09 .10 .23 .26 .14 .14 .47 1 .29 .30 .17 .13 .41 0 .20
fog 0 0 0 .09 .08 .20 .21 .10 .29 1 .33 .49 0 0 0 .13
brightness 0 0 0 0 .01 .01 0 .11 .30 .33 1 .18 0 .18 0 .08
contrast .02 0 0 .10 .11 .16 .15 .04 .17 .49 .18 1 .01 .19 0 .12
elastic_transform .11 .09 .14 .28 .47 .39 .42 .18 .13 0 0 .01 1 .54 0 .20
pixelate .50 .49 .50 .58 .67 .56 .44 .28 .41 0 .18 .19 .54 1 .47 .41
jpeg_compression .60 .58 .60 .03 .02 .01 .01 .02 0 0 0 0 0 .47 1 .17
""")
FIGURE3, FIGURE3_MEAN = _NUMBERS[:, :15], _NUMBERS[:, 15]
GAIN_IMAGENET_C = np.array([
    0.69, 0.69, 0.76, 0.72, 0.58, 0.52, 0.49, 0.53, 0.52, 0.49, 0.15, 0.63, 0.14, 0.28, 0.10,
])  # fmt: skip
GAIN_NOC = np.array([0.16, 0.21, 0.31, 0.29, 0.18, 0.22, 0.18, 0.29])
STANDARD_ROBUSTNESS = np.array([
    0.28, 0.28, 0.21, 0.25, 0.37, 0.45, 0.48, 0.44, 0.43, 0.50, 0.84, 0.36, 0.81, 0.70, 0.87,
])  # fmt: skip
# The non-zero NOC pairs of the same recovery.
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


def accuracies(table, reference, names):
    """Accuracies [1+n, 1+n] (clean first) behind a printed table of relative CE.

    error = clean + CE / 100 * (reference error - reference clean error), accuracy = 1 - error.
    """
    clean = table[:, 0]
    errors = clean[:, None] + table[:, 1 : 1 + len(names)] / 100 * (reference - ALEXNET_CLEAN)
    return 1 - np.concatenate([clean[:, None], errors], axis=1)
