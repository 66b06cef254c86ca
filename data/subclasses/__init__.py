"""Subclass robustness: superclasses are learnt from some of their subclasses, tested on others.

cifar100.py     `cifar100_subclass_k1` ... `_k4`: CIFAR-100's 20 superclasses, k of 5 subclasses held out
standin.py      generated stand-ins, drawn from a seed: CIFAR-100 as tfds stores it, and folders of synsets
wordnet.py      which synsets lie below which, from WordNet's file of nouns
imagenet22k.py  25 superclasses of ImageNet-22K: lists of seen and unseen synsets
synsets.py      `imagenet22k_superclasses`: the superclasses of such lists, from a folder of images for each synset

D. Hendrycks, T. Dietterich, "Benchmarking the Corruption and Structural Robustness of Neural
Networks", draft of 2018, section 4.
"""
