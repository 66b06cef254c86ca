"""Independent definitions that tests and benchmarks compare the library with; they share no code with it.

photographs.py   procedural photographs
features.py      the features of an image pair that the golden figures hold
imagenet_c/      one file for each group of corruptions: published levels, results in float64
cbar/            the candidates of ImageNet-C-bar, their blurs and their warps
"""
