"""Structural robustness: icons, subclasses, sequences of frames, style transfer, enhancements; see README.md."""
