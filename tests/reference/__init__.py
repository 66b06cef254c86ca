"""Independent definitions, without code of the library, that tests and benchmarks compare it with.

photographs.py   procedural photographs
features.py      the features of an image pair that the golden figures hold
imagenet_c/      one file for each group of corruptions: published levels, results in float64
cbar/            the candidates of ImageNet-C-bar, their blurs and their warps
"""
