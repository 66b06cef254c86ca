"""Published tables, as printed, for the tests of `analysis`.

S3: "Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions" (Laugros,
Caplier, Ospici). S1: "Using the Overlapping Score to Improve Corruption Benchmarks" (arXiv 2105.12357). S4:
"Benchmarking the Corruption and Structural Robustness of Neural Networks" (Hendrycks, Dietterich; early ImageNet-C
manuscript). CE rows are relative CE in percent unless a comment says raw.
"""

import numpy as np


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

# S3 Table 7: model trained with the row, tested on the column; clean error first, printed mCE last.
TABLE7_ROWS, TABLE7 = _rows("""
standard .247 121 119 122 147 121 118 107 97 109 98 94 116 68 79 56 104
gaussian_noise .264 6 9 8 122 88 100 95 87 93 125 107 129 58 19 15 71
shot_noise .269 10 6 9 125 92 102 96 84 94 126 103 128 59 20 16 71
impulse_noise .272 10 11 4 123 88 99 96 91 93 127 102 129 54 17 14 71
defocus_blur .300 62 62 63 6 25 36 34 76 77 82 91 93 46 2 50 54
glass_blur .287 74 73 74 24 8 32 30 81 81 83 95 99 34 2 55 56
motion_blur .263 92 92 92 55 41 6 26 76 94 73 97 93 42 10 53 63
zoom_blur .254 98 98 99 60 50 31 6 88 97 77 101 98 45 24 51 68
snow .263 114 113 118 115 91 87 87 5 74 97 84 117 54 40 52 83
frost .259 109 111 112 118 87 99 89 40 9 69 60 108 57 28 84 79
fog .254 117 116 118 136 115 100 86 76 79 2 58 57 73 88 72 86
brightness .235 108 111 110 142 113 112 104 86 88 75 7 100 72 60 55 89
contrast .282 96 98 100 131 103 97 87 82 76 50 72 2 66 53 50 78
elastic_transform .200 124 122 125 127 92 91 72 92 110 98 104 118 19 22 61 92
pixelate .251 99 98 102 129 87 96 93 93 95 90 86 108 53 5 42 85
jpeg_compression .256 86 86 88 143 110 118 113 98 102 120 101 129 66 32 11 94
""")

# S3 Table 8, the same for ImageNet-NOC.
TABLE8_ROWS, TABLE8 = _rows("""
standard .247 87 122 77 71 67 79 117 88 89
quantization .237 9 125 77 90 70 90 124 80 83
blur .251 79 7 61 72 82 90 132 106 79
vertical_artifacts .242 79 133 4 63 80 84 119 104 83
rain .231 86 131 78 2 73 82 115 97 83
border .241 89 123 71 73 8 74 118 89 81
shear .234 129 127 65 85 75 6 133 102 90
brightness .236 75 125 78 77 73 92 21 89 79
hue .261 83 139 91 96 74 101 116 1 88
""")

# S3 Table 5 (torchvision models on ImageNet-C) with the mCE of Table 3 first.
TABLE5_ROWS, TABLE5 = _rows("""
alexnet 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
squeezenet 118 118 116 114 104 110 106 105 106 110 98 101 100 126 129 229
vgg11 123 122 121 125 116 129 121 115 114 113 99 86 102 151 161 174
vgg19_bn 111 104 105 114 108 132 114 119 102 100 79 68 89 165 125 144
resnet18 104 104 106 111 100 116 108 112 103 101 89 67 87 133 97 126
resnet50 105 104 107 107 97 126 107 110 101 97 79 62 89 146 111 132
densenet121 94 84 87 89 97 120 101 104 91 87 61 50 66 147 97 122
densenet201 89 82 87 87 91 116 100 107 85 82 63 45 62 136 80 113
wide_resnet50_2 101 91 93 97 93 123 103 109 104 95 81 65 89 146 99 126
""")

# S3 Table 6 (the same models on ImageNet-NOC): clean error in percent, eight CE, printed mCE.
TABLE6_ROWS, TABLE6 = _rows("""
alexnet 43.5 100 100 100 100 100 100 100 100 100
squeezenet 41.8 143 97 109 111 93 99 109 86 106
vgg11 31.0 193 90 156 94 70 107 92 77 110
vgg19_bn 25.8 175 70 113 77 55 91 71 53 88
resnet18 30.2 128 68 103 84 69 92 80 64 86
resnet50 23.9 130 60 95 93 53 87 71 58 81
densenet121 25.3 101 58 98 89 55 72 57 54 73
densenet201 22.8 89 54 86 84 49 69 52 50 66
wide_resnet50_2 21.5 112 59 97 92 35 96 72 58 78
""")

# S3 Table 4 (robust ResNet-50): eight relative CE, printed INOC mCE, IC mCE (raw).
TABLE4_ROWS, TABLE4 = _rows("""
standard 130 60 95 93 53 87 71 58 81 77
sin_in 85 55 74 86 56 82 61 49 68 69
augmix 51 13 72 90 49 71 62 56 58 65
ant3x3 85 56 80 109 58 76 67 55 73 63
deepaugment 65 25 69 93 61 67 46 43 59 60
""")

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

# Overlap matrix of S3 Fig. 3 (an image in the paper), recovered from Table 7 by hand calculation and rounded to two
# decimals; last column the off-diagonal mean.
FIGURE3_ROWS, FIGURE3 = _rows("""
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
