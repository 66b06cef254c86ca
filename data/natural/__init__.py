"""Naturally shifted test sets of ImageNet's and CIFAR-10's classes.

    imagenet_v2, imagenet_v2_threshold, imagenet_v2_top    new photographs, all 1,000 classes
    imagenet_sketch                                        drawings, all classes
    imagenet_a, imagenet_r                                 hard photographs; renditions: 200 classes each
    objectnet                                              odd poses and places: 113 objects, 125 classes
    cifar10_1, cifar10_1_v4                                new photographs, versions 6 and 4
    cinic10                                                ImageNet's photographs at 32x32

`sets` holds names, folders and classes of each set (classes.txt has the facts), and reads its images at the size of a model's
input.

    images = data.natural.open_natural("imagenet_r", "DIR", 224)
    images.split, images.classes
"""

from data.natural.sets import NAMES, Classes, NaturalImages, open_natural

__all__ = ["NAMES", "Classes", "NaturalImages", "open_natural"]
