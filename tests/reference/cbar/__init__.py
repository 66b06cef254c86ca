"""The C-bar candidates in NumPy and SciPy, float64: 8-bit image and draws in, 8-bit image out."""
