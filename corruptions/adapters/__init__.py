"""Layers and transforms of other libraries: Grain and Keras."""
