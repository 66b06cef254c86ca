"""CondenseNet (Huang et al. 2018, arXiv:1711.09224): groups of convolutions that training learns.

learned.py      the 1x1 convolution that drops inputs while it trains, and its group lasso
network.py      the network, in the form that is trained and in the one that is used
conversion.py   from the first form to the second
"""

from models.condensenet.network import FAMILY, SMALLEST

__all__ = ["FAMILY", "SMALLEST"]
