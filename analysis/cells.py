"""The cells of a matrix in a figure: their colours, and lines over those that are undefined or hardly known."""

from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import Normalize
from matplotlib.path import Path

VALUES = 30
"""Most corruptions for which cells show values, and are drawn one by one."""


class Scale(NamedTuple):
    """A Matplotlib colormap, the values at its ends, and the name of the values."""

    colours: str
    low: float
    high: float
    label: str


OVERLAP = Scale("Blues", 0, 1, "overlap")
TRANSFER = Scale("RdBu", -1, 1, "transfer")


def draw_cells(axes: Axes, matrix: np.ndarray, scale: Scale, linewidth: float) -> Collection:
    """Draws the cells of a matrix [n, n], row 0 on top; the diagonal and undefined cells are grey.

    Of more than `VALUES` corruptions all cells of a colour are one path, so that files stay small.
    """
    n = len(matrix)
    cells = np.ma.masked_invalid(matrix)
    cells[np.eye(n, dtype=bool)] = np.ma.masked
    axes.set_facecolor("#dddddd")
    axes.tick_params(length=0)
    axes.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
    colours = {"cmap": scale.colours, "vmin": scale.low, "vmax": scale.high}
    if n <= VALUES:
        return axes.pcolormesh(cells, **colours, edgecolors="white", linewidth=linewidth)
    shown = np.clip(cells.compressed(), scale.low, scale.high)
    colour = (256 * (shown - scale.low) / (scale.high - scale.low)).astype(int).clip(max=255)
    places, which = np.argwhere(~np.ma.getmaskarray(cells)), np.unique(colour)
    paths = [_squares(places[colour == k]) for k in which]
    middles = scale.low + (which + 0.5) / 256 * (scale.high - scale.low)
    norm = Normalize(scale.low, scale.high)
    drawn = PathCollection(paths, array=middles, cmap=scale.colours, norm=norm, edgecolors="white", linewidth=linewidth)
    axes.add_collection(drawn, autolim=False)
    return drawn


def _squares(places):
    """Makes one path of the cells at places (row, column) [k, 2]."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    codes = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)
    return Path((places[:, None, ::-1] + corners).reshape(-1, 2), np.tile(codes, len(places)))


def hatch(axes, where, **style):
    """Draws lines over cells, so that a dark colour does not pass for a finding."""
    if len(where) > VALUES and where.any():
        axes.add_patch(matplotlib.patches.PathPatch(_squares(np.argwhere(where)), linewidth=0, **style))
        return
    for i, j in np.argwhere(where):
        axes.add_patch(matplotlib.patches.Rectangle((j, i), 1, 1, linewidth=0, **style))
