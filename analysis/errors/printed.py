"""The tables that papers print with a column for each corruption: CE and errors in percent, beside which ours stand."""

from collections.abc import Mapping
from typing import NamedTuple

from analysis.references import IMAGENET_C, IMAGENET_NOC


class Printed(NamedTuple):
    """A table that a paper prints, with a column for each corruption."""

    source: str  # paper and table
    dataset: str  # that the models were evaluated on
    benchmark: str
    severities: str  # `levels` or `random`
    measure: str  # one of `analysis.errors.scores.FIELDS`
    columns: tuple[str, ...]  # plain names of the corruptions
    # {model: (clean error, the value of each corruption, the mean)} in percent, as printed; "" where none is.
    rows: Mapping[str, tuple[str, ...]]


def _printed(source: str, dataset: str, benchmark: str, severities: str, measure: str, table: str) -> Printed:
    """Reads a table: a line of corruptions, then for each model its name, clean error, values and mean; - is none.

    A line with only a clean error and a mean has no values.
    """
    columns, *rows = (line.split() for line in table.strip().splitlines())
    cells = {model: tuple("" if cell == "-" else cell for cell in row) for model, *row in rows}
    filled = {m: row if len(row) > 2 else (row[0], *[""] * len(columns), row[1]) for m, row in cells.items()}
    return Printed(source, dataset, benchmark, severities, measure, tuple(columns), filled)


_C, _NOC, _DRAFT = " ".join(IMAGENET_C), " ".join(IMAGENET_NOC), "Benchmarking Corruption and Structural Robustness"
_COVERAGE, _INTERACTION = "Increasing the Coverage and Balance", "On Interaction Between Augmentations and Corruptions"
PRINTED = (
    _printed(f"{_DRAFT} (draft), Table 1", "imagenet", "imagenet_c", "levels", "CE", f"""
{_C}
alexnet 43.5 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
squeezenet1_1 41.8 104.4
vgg11 31.0 93.5
vgg19 27.6 88.9
vgg19_bn 25.8 81.6
resnet18 30.2 84.7
resnet50 23.9 80 82 83 75 89 78 80 78 75 66 57 71 85 77 77 76.7
"""),
    _printed(f"{_DRAFT} (draft), its architectures", "imagenet", "imagenet_c", "levels", "CE", f"""
{_C}
msdnet 24.6 73.6
multigrid34 24.6 73.3
condensenet74_4 26.3 80.8
condensenet74_8 28.9 84.6
densenet121 25.6 73.4
densenet161 22.9 66.4
resnext50 22.9 68.2
resnext101_64x4d 21.0 62.2
"""),
    # Read off the figure: the three noises alone.
    _printed(f"{_DRAFT} (draft), figure of multi-scale networks", "imagenet", "imagenet_c", "levels", "CE", f"""
{_C}
resnet50 23.9 79.8 81.6 82.6 - - - - - - - - - - - - 76.7
msdnet 24.6 74.3 76.7 78.3 - - - - - - - - - - - - 73.6
multigrid34 24.6 69.8 71.0 71.3 - - - - - - - - - - - - 73.3
"""),
    _printed(f"{_DRAFT} (a later draft), larger networks", "imagenet", "imagenet_c", "levels", "relative_CE", f"""
{_C}
densenet121 25.6 92.8
densenet161 22.9 84.6
resnext50 22.9 88.6
resnext101_64x4d 21.0 80.1
"""),
    # Its values by corruption are those of Table 5 of the next paper, in whole percent; VGG-19's were not at hand.
    _printed(f"{_DRAFT} (draft), Table 2", "imagenet", "imagenet_c", "levels", "relative_CE", f"""
{_C}
alexnet 43.5 100.0
squeezenet1_1 41.8 117.9
vgg11 31.0 123.3
vgg19 27.6 122.9
vgg19_bn 25.8 111.1
resnet18 30.2 103.9
resnet50 23.9 105.0
"""),
    _printed(f"{_COVERAGE}, Table 5", "imagenet", "imagenet_c", "levels", "relative_CE", f"""
{_C}
alexnet - 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
squeezenet1_1 - 118 116 114 104 110 106 105 106 110 98 101 100 126 129 229 118
vgg11 - 122 121 125 116 129 121 115 114 113 99 86 102 151 161 174 123
vgg19_bn - 104 105 114 108 132 114 119 102 100 79 68 89 165 125 144 111
resnet18 - 104 106 111 100 116 108 112 103 101 89 67 87 133 97 126 104
resnet50 - 104 107 107 97 126 107 110 101 97 79 62 89 146 111 132 105
densenet121 - 84 87 89 97 120 101 104 91 87 61 50 66 147 97 122 94
densenet201 - 82 87 87 91 116 100 107 85 82 63 45 62 136 80 113 89
wide_resnet50_2 - 91 93 97 93 123 103 109 104 95 81 65 89 146 99 126 101
"""),
    _printed(f"{_COVERAGE}, Table 6", "imagenet", "imagenet_noc", "random", "relative_CE", f"""
{_NOC}
alexnet 43.5 100 100 100 100 100 100 100 100 100
squeezenet1_1 41.8 143 97 109 111 93 99 109 86 106
vgg11 31.0 193 90 156 94 70 107 92 77 110
vgg19_bn 25.8 175 70 113 77 55 91 71 53 88
resnet18 30.2 128 68 103 84 69 92 80 64 86
resnet50 23.9 130 60 95 93 53 87 71 58 81
densenet121 25.3 101 58 98 89 55 72 57 54 73
densenet201 22.8 89 54 86 84 49 69 52 50 66
wide_resnet50_2 21.5 112 59 97 92 35 96 72 58 78
"""),
    _printed(f"{_COVERAGE}, Table 4", "imagenet", "imagenet_noc", "random", "relative_CE", f"""
{_NOC}
standard - 130 60 95 93 53 87 71 58 81
sin_in - 85 55 74 86 56 82 61 49 68
augmix - 51 13 72 90 49 71 62 56 58
ant - 85 56 80 109 58 76 67 55 73
deepaugment - 65 25 69 93 61 67 46 43 59
"""),
    _printed(f"{_COVERAGE}, Table 4", "imagenet", "imagenet_c", "levels", "CE", f"""
{_C}
standard - 77
sin_in - 69
augmix - 65
ant - 63
deepaugment - 60
"""),
    _printed(f"{_COVERAGE}, Table 7", "imagenet100", "imagenet_c", "levels", "relative_CE", f"""
{_C}
standard 24.7 121 119 122 147 121 118 107 97 109 98 94 116 68 79 56 104
gaussian_noise 26.4 6 9 8 122 88 100 95 87 93 125 107 129 58 19 15 71
shot_noise 26.9 10 6 9 125 92 102 96 84 94 126 103 128 59 20 16 71
impulse_noise 27.2 10 11 4 123 88 99 96 91 93 127 102 129 54 17 14 71
defocus_blur 30.0 62 62 63 6 25 36 34 76 77 82 91 93 46 2 50 54
glass_blur 28.7 74 73 74 24 8 32 30 81 81 83 95 99 34 2 55 56
motion_blur 26.3 92 92 92 55 41 6 26 76 94 73 97 93 42 10 53 63
zoom_blur 25.4 98 98 99 60 50 31 6 88 97 77 101 98 45 24 51 68
snow 26.3 114 113 118 115 91 87 87 5 74 97 84 117 54 40 52 83
frost 25.9 109 111 112 118 87 99 89 40 9 69 60 108 57 28 84 79
fog 25.4 117 116 118 136 115 100 86 76 79 2 58 57 73 88 72 86
brightness 23.5 108 111 110 142 113 112 104 86 88 75 7 100 72 60 55 89
contrast 28.2 96 98 100 131 103 97 87 82 76 50 72 2 66 53 50 78
elastic_transform 20.0 124 122 125 127 92 91 72 92 110 98 104 118 19 22 61 92
pixelate 25.1 99 98 102 129 87 96 93 93 95 90 86 108 53 5 42 85
jpeg_compression 25.6 86 86 88 143 110 118 113 98 102 120 101 129 66 32 11 94
"""),
    _printed(f"{_COVERAGE}, Table 8", "imagenet100", "imagenet_noc", "random", "relative_CE", f"""
{_NOC}
standard 24.7 87 122 77 71 67 79 117 88 89
quantization 23.7 9 125 77 90 70 90 124 80 83
blur 25.1 79 7 61 72 82 90 132 106 79
vertical_artifacts 24.2 79 133 4 63 80 84 119 104 83
rain 23.1 86 131 78 2 73 82 115 97 83
border 24.1 89 123 71 73 8 74 118 89 81
shear 23.4 129 127 65 85 75 6 133 102 90
brightness 23.6 75 125 78 77 73 92 21 89 79
hue 26.1 83 139 91 96 74 101 116 1 88
"""),
    _printed(f"{_INTERACTION}, supplement, Table 2", "imagenet", "imagenet_c", "levels", "mean_error", f"""
{_C}
standard - 58.1±0.4
autoaugment_imagenet - 55.0±0.2
sin - 52.4±0.1
augmix - 49.2±0.7
patch_gaussian - 49.3±0.2
ant - 48.8
deepaugment - 46.6
deepaugment_augmix - 41.0
"""),
    # The paper's headings of the two sparkles are exchanged (its README has them right).
    _printed(f"{_INTERACTION}, supplement, Tables 2 and 3", "imagenet", "imagenet_c_bar", "levels", "mean_error", """
blue_noise_sample plasma_noise checkerboard_cutout concentric_sine_waves single_frequency_greyscale brownish_noise perlin_noise sparkles inverse_sparkles caustic_refraction
standard - 68.6±0.5 71.7±0.7 49.4±0.6 84.7±0.5 79.0±0.8 37.5±0.5 34.3±0.1 32.4±0.5 76.7±0.2 42.8±0.2 57.7±0.2
autoaugment_imagenet - 54.8±0.7 68.3±0.7 43.8±1.0 86.5±0.6 78.8±0.9 34.5±0.8 33.8±0.2 36.1±1.0 77.1±1.2 43.8±0.2 55.7±0.3
sin - 54.7±1.5 69.8±1.1 52.8±1.0 79.6±0.4 69.2±0.6 37.8±0.4 35.3±0.1 37.0±0.5 77.3±0.8 44.1±0.2 55.8±0.3
augmix - 43.2±0.8 72.2±0.4 46.1±0.2 76.3±0.3 67.4±0.7 38.8±0.5 32.4±0.1 32.3±0.2 76.4±0.4 39.2±0.2 52.4±0.2
patch_gaussian - 60.3±2.9 74.1±0.7 48.5±1.0 82.1±0.4 76.7±0.8 38.9±0.4 34.6±0.1 32.1±0.7 76.5±0.6 42.1±0.4 56.6±0.4
ant - 35.8 75.5 56.9 76.4 63.7 41.0 35.2 35.0 76.1 43.3 53.9
deepaugment - 41.7 73.3 53.9 74.6 50.9 37.2 30.3 32.9 74.7 40.9 51.0
deepaugment_augmix - 34.9 67.9 49.8 69.7 48.0 35.2 30.6 32.9 74.3 39.8 48.3
"""),
    _printed(f"{_INTERACTION}, supplement, Table 2", "cifar10", "imagenet_c", "levels", "mean_error", f"""
{_C}
standard - 27.0±0.6
autoaugment_cifar - 19.4±0.2
augmix+jsd - 11.1±0.2
patch_gaussian - 17.0±0.4
"""),
    _printed(f"{_INTERACTION}, supplement, Tables 2 and 3", "cifar10", "cifar10_c_bar", "levels", "mean_error", """
blue_noise_sample brownish_noise checkerboard_cutout circular_motion_blur inverse_sparkles lines pinch_and_twirl ripple sparkles transverse_chromatic_aberration
standard - 42.9±5.1 27.2±0.5 23.3±0.6 11.8±0.4 43.3±0.8 26.2±0.9 11.3±0.3 21.6±1.2 21.0±1.1 42.9±2.7 27.1±0.5
autoaugment_cifar - 17.7±1.7 17.5±0.5 17.6±0.5 9.5±0.3 40.4±1.5 23.6±0.7 10.7±0.3 23.5±0.5 17.5±0.7 31.8±1.8 21.0±0.4
augmix+jsd - 9.8±0.7 27.8±1.3 13.4±0.4 5.9±0.2 30.3±0.7 18.0±0.6 8.3±0.2 12.1±0.4 15.5±0.5 19.2±1.0 16.0±0.3
patch_gaussian - 9.0±1.1 30.1±1.1 21.6±0.8 12.8±0.5 35.4±1.6 20.6±0.5 8.8±0.2 21.5±0.9 19.3±0.5 59.5±3.5 23.8±0.5
"""),
)  # fmt: skip
