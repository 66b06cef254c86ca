"""Subclass robustness: superclasses are learnt from some of their subclasses, tested on others.

cifar100.py     `cifar100_subclass_k1` ... `_k4`: CIFAR-100's 20 superclasses, k of 5 subclasses held out
standin.py      a generated stand-in for CIFAR-100, drawn from a seed, as tfds stores it
wordnet.py      which synsets lie below which, from WordNet's file of nouns
imagenet22k.py  25 superclasses of ImageNet-22K: lists of seen and unseen synsets

D. Hendrycks, T. Dietterich, "Benchmarking the Corruption and Structural Robustness of Neural
Networks", draft of 2018, section 4.
"""
