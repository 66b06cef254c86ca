"""One small network of each larger family, of the code that makes the published ones: few layers,
narrow classifiers."""

from functools import partial

import numpy as np

from models import vgg
from models.condensenet import CondenseNet
from models.densenet import DenseNet
from models.layers import Options
from models.msdnet import MSDNet
from models.multigrid import MultigridResNet
from models.resnet import Bottleneck32x4d, ResNet, WideBottleneck

SIZES = (1, 1, 1, 1)
GRIDS = ((1, (64, 32, 16)), (1, (64, 32, 24)), (1, (64, 64)), (1, (128,)))  # pooled, merged, merged
DENSE = {"groups": 4, "converted": False, "stages": ((2, 8), (1, 16)), "head_share": 1}
NETWORKS = {  # name -> (constructor, side of small images that leave several pixels in the last stage)
    "wide_resnet": (partial(ResNet, block=WideBottleneck, stage_sizes=SIZES, stem="cifar"), 16),
    "resnext": (partial(ResNet, block=Bottleneck32x4d, stage_sizes=SIZES, stem="imagenet"), 40),
    "densenet": (partial(DenseNet, growth=8, block_sizes=(3, 2, 2, 2), stem="imagenet"), 70),
    "cifar_densenet": (partial(DenseNet, growth=8, block_sizes=(2, 2, 2, 2), stem="cifar"), 17),
    "vgg": (partial(vgg.VGG, stage_sizes=(1, 1, 1, 1, 1), batch_norm=False), 64),
    "vgg_bn": (partial(vgg.VGG, stage_sizes=(1, 1, 2, 1, 1), batch_norm=True), 64),
    "cifar_vgg_bn": (partial(vgg.CifarVGG, stage_sizes=(1, 1, 1, 1, 1), batch_norm=True), 32),
    "alexnet": (vgg.AlexNet, 64),
    "squeezenet1_0": (vgg.FAMILY["squeezenet1_0"], 42),
    "squeezenet1_1": (vgg.FAMILY["squeezenet1_1"], 37),
    "msdnet": (partial(MSDNet, exits=2, step=1, base=2), 64),
    "multigrid": (partial(MultigridResNet, stages=GRIDS), 64),
    "condensenet": (partial(CondenseNet, **DENSE), 32),
}


def build(monkeypatch, name, num_classes=10, dtype="float32", **options):
    """The network with hidden layers of 32 instead of 4096, without dropout."""
    monkeypatch.setattr(vgg, "HIDDEN", 32)
    if name in ("vgg", "vgg_bn", "alexnet") or name.startswith("squeezenet"):
        options.setdefault("dropout", 0.0)
    shared = {key: options.pop(key) for key in ("mean", "std", "init", "conv") if key in options}
    return NETWORKS[name][0](num_classes, Options(np.random.default_rng(1), dtype, **shared), **options)
