"""Features of transforms in a network, and distances of schemes to corruptions in them.

features   distributions of transforms (schemes, corruptions) and a network's features of images under them
centres    mean features of corruptions, and the distances of schemes to them, kept in a folder
sampling   means over images with one draw each, pools of transforms, repeated measurements of pairs

`analysis.distances` makes tables of the distances.
"""
