"""ICONS-50: 10,000 icons of 50 classes in 13 rendering styles, and protocols that hold some out.

release.py     the two releases: folders of PNG files, and one .npy file
pickled.py     reads a pickle without running what it may hold
protocols.py   which icons are tested on: those of a style, or of 50 subclasses
standin.py     a procedural stand-in, drawn from a seed, in the layouts of both releases
load.py        `icons50_microsoft`, `icons50_apple`, `icons50_subclass`: datasets of `data.load`

D. Hendrycks, T. Dietterich, "Benchmarking the Corruption and Structural Robustness of Neural
Networks", draft of 2018, section 4.
"""
