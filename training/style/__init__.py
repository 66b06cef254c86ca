"""Style transfer: a corruption that needs the weights of a network, and how they are made.

weights.py      files with a network and the statistics of its styles; the one in use
corruption.py   registers `structural/style_transfer`; imported where config.style names a file
pictures.py     pictures of styles: a folder's, or procedural textures
decoder.py      trains a decoder and writes such a file
"""
