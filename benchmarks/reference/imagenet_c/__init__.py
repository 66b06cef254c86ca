"""The original ImageNet-C in NumPy, SciPy and Pillow: its published levels, and float64 results for given draws."""
