"""Distances between distributions of transforms in the feature space of a network: MSD and MMD.

Transforms a of an augmentation have features f(a) in R^D (the mean penultimate feature of a fixed set of images, the
same a applied to each; `evaluation.distances.features`), a corruption c has the centre fbar(c), the mean of f over its
draws.

    MSD(p_a, p_c) = min over sampled a of |f(a) - fbar(c)|      minimal sample distance
    MMD(p_a, p_c) = |mean over a of f(a) - fbar(c)|             distance of the means

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021), section 4; features are not normalised, and MMD is no kernel statistic. Both are asymmetric: only
the corruption is averaged first.

Spread. The paper redraws images and transforms and finds a standard deviation of about 5 % of the distance (its Figure
6). Here everything is measured on G = 1 + R weightings at once: row 0 takes all images, draws and transforms, every
other row a random half of each. For means, halves without replacement vary as much as samples drawn anew. For a minimum
the spread is no standard error: it says how stable the minimum is, and over a half that is larger on average.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from analysis.frames import percentile_interval

SCHEME = "scheme"  # in the record of stored distances: name of the scheme
CENTRES = "centres"  # the same: {corruption|severity: digest of its centre}


def halves(number, replicates, rng):
    """Members of the whole and of random halves: bool [1 + replicates, number], row 0 all true.

    A half has number // 2 members, at least one. `rng`: np.random.Generator.
    """
    if number < 1 or replicates < 0:
        raise ValueError(f"expected something to halve and replicates >= 0, found {number} and {replicates}")
    order = rng.permuted(np.tile(np.arange(number), (replicates, 1)), axis=1)
    return np.concatenate([np.ones((1, number), bool), order < max(1, number // 2)])


def half_weights(number, replicates, rng):
    """`halves` as weights that sum to one: float32 [1 + replicates, number]."""
    members = halves(number, replicates, rng)
    return (members / members.sum(axis=1, keepdims=True)).astype(np.float32)


def spread(values):
    """Standard deviation of `values` [1 + R, ...] over the R halves; NaN where R < 2."""
    values = np.asarray(values, float)
    return np.std(values[1:], axis=0, ddof=1) if len(values) > 2 else np.full(values.shape[1:], np.nan)


class Stream:
    """Running MSD and MMD to m centres, from chunks of transform features that need not be kept.

    Centres fbar(c) are [G, m, D]: one row of centres for each weighting of images and draws (G = 1: just the centres).

    Attributes:
      number: transforms seen in each weighting, int [G].
    """

    def __init__(self, centres):
        self._centres = finite("centres", centres, 3)
        groups, targets, width = self._centres.shape
        self._minimum = np.full((groups, targets), np.inf)
        self._sum = np.zeros((groups, width))
        self.number = np.zeros(groups, int)

    def add(self, features, members=None):
        """Adds K transforms: features [K, G, D]; members bool [G, K], which of them count in which weighting."""
        features = finite("features", features, 3)
        groups, _, width = self._centres.shape
        if features.shape[1:] != (groups, width):
            raise ValueError(f"expected features [K, {groups}, {width}], found shape {features.shape}")
        shape = (groups, len(features))
        members = np.ones(shape, bool) if members is None else np.asarray(members)
        if members.shape != shape or members.dtype != bool:
            raise ValueError(f"expected members bool {shape}, found {members.dtype} {members.shape}")
        for g in np.flatnonzero(members.any(axis=1)):
            counted = features[members[g], g]
            self._minimum[g] = np.minimum(self._minimum[g], cdist(counted, self._centres[g]).min(axis=0))
            self._sum[g] += counted.sum(axis=0)
        self.number += members.sum(axis=1)

    def state(self) -> dict[str, np.ndarray]:
        """Gives the sums and minima so far as arrays, for `resume`."""
        return {"minimum": self._minimum.copy(), "sum": self._sum.copy(), "number": self.number.copy()}

    def resume(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from the state of a stream to the same centres; ValueError for another number of either.

        Whether the centres are the same is for the caller to know: their values are not compared.
        """
        before = {name: array.shape for name, array in self.state().items()}
        given = {name: np.shape(array) for name, array in state.items()}
        if before != given:
            raise ValueError(f"expected the state of a stream with shapes {before}, found {given}")
        self._minimum, self._sum, self.number = (np.array(state[name]) for name in ("minimum", "sum", "number"))

    @property
    def msd(self):
        """Minimal sample distance, float64 [G, m]."""
        self._check()
        return self._minimum.copy()

    @property
    def mmd(self):
        """Distance of the means, float64 [G, m]."""
        self._check()
        mean = self._sum / self.number[:, None]
        return np.linalg.norm(mean[:, None] - self._centres, axis=-1)

    def _check(self):
        if not self.number.all():
            raise ValueError(f"expected transforms in every weighting, found {self.number.tolist()}")


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Computes Spearman's rank correlation in [-1, 1], ties at their average rank; NaN when x or y is constant.

    x, y: [n] without NaN, n >= 2.
    """
    return float(_spearman(*_points(x, y)))


def spearman_interval(
    x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Computes the percentile interval of `spearman` under resampling of the points with replacement: (lower, upper).

    Resamples in which x or y is constant are not counted; (NaN, NaN) when fewer than half are left.
    """
    x, y = _points(x, y)
    drawn = np.random.default_rng(seed).integers(0, len(x), (resamples, len(x)))
    return percentile_interval(_spearman(x[drawn], y[drawn]), level, known=0.5)


def _points(x, y):
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or np.isnan(x).any() or np.isnan(y).any():
        raise ValueError(f"expected two rows of at least 2 numbers without NaN, found shapes {x.shape} and {y.shape}")
    return x, y


def _spearman(x, y):
    """Rank correlations [...] of x and y [..., n]."""
    from scipy.stats import rankdata  # takes a second, and most commands do without

    x, y = (rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2 for values in (x, y))
    norm = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(norm > 0, (x * y).sum(-1) / np.where(norm > 0, norm, 1), np.nan)


def measure_distances(features: np.ndarray, centres: np.ndarray) -> "Stream":
    """Measures features [n, D] against centres [m, D], all at once; `msd` and `mmd` of the result are [1, m]."""
    stream = Stream(finite("centres", centres, 2)[None])
    stream.add(finite("features", features, 2)[:, None])
    return stream


def finite(what, values, rank):
    values = np.asarray(values, np.float64)
    if values.ndim != rank or not values.size:
        raise ValueError(f"expected {what} of rank {rank}, none of them empty, found shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"expected finite {what}, found NaN or infinity")
    return values
