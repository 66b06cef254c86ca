"""ResNeXt (Xie et al. 2017, arXiv:1611.05431): ResNets whose 3x3 convolutions have 32 groups."""

from models.resnet import Bottleneck, family


class Bottleneck32x4d(Bottleneck):
    """32 groups of 4 channels in the first stage, twice as many in each following one."""

    groups, group_width = 32, 4


class Bottleneck32x8d(Bottleneck):
    """32 groups of 8 channels in the first stage."""

    groups, group_width = 32, 8


FAMILY = family({"resnext50": (Bottleneck32x4d, (3, 4, 6, 3)), "resnext101": (Bottleneck32x8d, (3, 4, 23, 3))})
