"""Networks that hold maps of several resolutions at every depth.

msdnet.py      multi-scale DenseNets, with an answer at several depths
multigrid.py   residual multigrid networks
"""

from models.multi_scale import msdnet, multigrid

FAMILY = msdnet.FAMILY | multigrid.FAMILY
