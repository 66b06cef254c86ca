"""ResNeXt (Xie et al. 2017, arXiv:1611.05431): ResNets whose 3x3 convolutions have many groups.

`resnext50` is the 32x4d, `resnext101` the 32x8d, as torchvision has them.
"""

from models.resnet import Bottleneck, family


class Bottleneck32x4d(Bottleneck):
    """32 groups of 4 channels in the first stage, twice as many in each following one."""

    groups, group_width = 32, 4


class Bottleneck32x8d(Bottleneck):
    """32 groups of 8 channels in the first stage."""

    groups, group_width = 32, 8


class Bottleneck64x4d(Bottleneck):
    """64 groups of 4 channels in the first stage."""

    groups, group_width = 64, 4


FAMILY = family(
    {
        "resnext50": (Bottleneck32x4d, (3, 4, 6, 3)),
        "resnext101": (Bottleneck32x8d, (3, 4, 23, 3)),
        "resnext101_32x4d": (Bottleneck32x4d, (3, 4, 23, 3)),
        "resnext101_64x4d": (Bottleneck64x4d, (3, 4, 23, 3)),
    }
)
