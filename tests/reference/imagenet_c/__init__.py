"""The original ImageNet-C in NumPy, SciPy and Pillow: published levels, results for given draws."""
