"""Streams: the order of test images and their corruptions. Pure NumPy; pixels are drawn later.

continual         the corruptions one after the other at one severity, each over all images
gradual           every corruption through severities 1 2 3 4 5 4 3 2 1, the first one only from 5 down
gradual_from_1    the same, the first one from 1 too
mixed             the images of all corruptions, shuffled
correlated        continual, the images of a corruption by class: sorted, or in Dirichlet chunks
correlated_slots  the same in Dirichlet slots of any size
mixed_correlated  the images of all corruptions at once, by class
label_shift       each corruption over draws with replacement in blocks, in which one class is frequent
forgetting        continual, with all clean images after every corruption

Q. Wang et al., "Continual test-time domain adaptation" (2022); R. A. Marsden et al., "Universal test-time adaptation
through weight ensembling, diversity weighting, and prior correction" (2024), for the first seven; L. Yuan et al., "Robust
test-time adaptation in dynamic scenarios" (2023), for slots; S. Niu et al., "Towards
stable test-time adaptation in dynamic wild world" (2023), for label_shift, and "Efficient test-time model adaptation without
forgetting" (2022).
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import corruptions

STANDARD = corruptions.names("imagenet_c")
"""The usual order of ImageNet-C's corruptions; `ORDERS` counts in it."""
ORDERS = (  # by the authors of CoTTA, for gradual and for ImageNet-C
    (10, 13, 0, 5, 6, 4, 2, 14, 3, 12, 1, 8, 7, 9, 11),
    (14, 1, 6, 8, 11, 9, 3, 12, 0, 10, 4, 2, 13, 7, 5),
    (11, 3, 0, 1, 7, 8, 4, 6, 12, 14, 13, 10, 2, 5, 9),
    (1, 9, 4, 13, 7, 12, 10, 2, 3, 8, 11, 0, 5, 14, 6),
    (13, 4, 6, 7, 9, 2, 10, 5, 8, 14, 0, 1, 11, 3, 12),
    (5, 7, 9, 1, 3, 11, 6, 10, 8, 12, 4, 0, 13, 14, 2),
    (8, 2, 14, 11, 6, 4, 13, 7, 3, 5, 10, 12, 1, 9, 0),
    (4, 6, 2, 9, 7, 14, 0, 8, 1, 10, 11, 5, 13, 3, 12),
    (3, 5, 6, 1, 0, 4, 14, 9, 11, 13, 8, 7, 10, 12, 2),
    (11, 0, 3, 6, 8, 4, 14, 9, 13, 12, 1, 2, 7, 5, 10),
)
_UP_AND_DOWN = (1, 2, 3, 4, 5, 4, 3, 2, 1)
_LEAST = 10  # images in a chunk
_SLOTS = 100  # at most
_DRAWS = 100  # images in a block of label_shift
_TRIES = 1000


class Segment(NamedTuple):
    """Images under one condition: corruptions one after the other, each at its severity. () is clean."""

    parts: tuple[tuple[str, float], ...]

    @property
    def label(self) -> str:
        return " + ".join(f"{name}-{severity:g}" for name, severity in self.parts) or "clean"


class Stream(NamedTuple):
    """An order of images."""

    name: str  # name of the kind, with its settings
    segments: tuple[Segment, ...]  # the conditions
    image: np.ndarray  # int32 [T], row of each image in the test split
    segment: np.ndarray  # int32 [T], its condition; it never falls unless the stream is mixed
    shifts: np.ndarray  # int32, the times at which the condition changes, 0 first; [0] of a mixed stream

    def __len__(self) -> int:
        return len(self.image)

    def of(self, rows: np.ndarray) -> "Stream":
        """Shows image rows[i] of the test split where this stream shows image i."""
        return Stream(self.name, self.segments, rows[self.image].astype(np.int32), self.segment, self.shifts)

    def reordered(self, name: str, order: np.ndarray) -> "Stream":
        """Shows the images in another order, mixed."""
        return Stream(name, self.segments, self.image[order], self.segment[order], np.zeros(1, np.int32))


def continual(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int | None = None
) -> Stream:
    """Shows all images under each corruption in turn; in stored order, or shuffled for each by a seed."""
    return _of_segments("continual", labels, _each(names, severity), _order(seed))


def gradual(labels: np.ndarray, names: Sequence[str] = STANDARD, seed: int | None = None) -> Stream:
    """Raises and lowers the severity of each corruption in turn, but the first one only falls, from 5: 131 segments of
    ImageNet-C's 15.
    """
    segments = [Segment(((name, level),)) for name in names for level in _UP_AND_DOWN]
    return _of_segments("gradual", labels, segments[4:], _order(seed))


def gradual_from_1(labels: np.ndarray, names: Sequence[str] = STANDARD, seed: int | None = None) -> Stream:
    """Raises and lowers the severity of each corruption in turn, the first one too: 135 segments of ImageNet-C's 15."""
    segments = [Segment(((name, level),)) for name in names for level in _UP_AND_DOWN]
    return _of_segments("gradual_from_1", labels, segments, _order(seed))


def mixed(labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int = 0) -> Stream:
    """Shuffles the images of all corruptions at one severity."""
    plain = continual(labels, names, severity)
    return plain.reordered("mixed", np.random.default_rng(seed).permutation(len(plain)))


def correlated(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int = 0, delta: float = 0.0
) -> Stream:
    """Shows the images of each corruption by class: sorted with delta 0, else `dirichlet` with this delta."""
    rng = np.random.default_rng(seed)

    def order(labels):
        shuffled = rng.permutation(len(labels))
        return shuffled[by_class(labels[shuffled], delta, rng)]

    return _of_segments(f"correlated:{delta:g}", labels, _each(names, severity), order)


def correlated_slots(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int = 0, delta: float = 0.1
) -> Stream:
    """Shows the images of each corruption in `slots` with this delta; 0 is the published .1."""
    rng, delta = np.random.default_rng(seed), delta or 0.1
    order = functools.partial(slots, delta=delta, rng=rng)
    return _of_segments(f"correlated_slots:{delta:g}", labels, _each(names, severity), order)


def mixed_correlated(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int = 0, delta: float = 0.01
) -> Stream:
    """Shuffles the images of all corruptions, then puts them by class as `correlated` does."""
    shuffled, rng = mixed(labels, names, severity, seed), np.random.default_rng([seed, 1])
    order = by_class(np.asarray(labels)[shuffled.image], delta, rng)
    return shuffled.reordered(f"mixed_correlated:{delta:g}", order)


def label_shift(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int = 0, ratio: float = 500_000
) -> Stream:
    """Draws 100 images with replacement for each of C blocks; every corruption shows the same draws.

    Blocks are in random order. Each has a class of its own, with probability r / (r + C - 1); the other classes share the
    rest evenly. The ratio r of at least 1, else a ValueError, says how much more frequent the own class is than each
    other: 1 is no shift, 500,000 nearly sorted.
    """
    if not ratio >= 1:
        raise ValueError(f"expected a ratio of at least 1, found {ratio}")
    labels, rng = np.asarray(labels), np.random.default_rng(seed)
    classes, counts = np.unique(labels, return_counts=True)
    own, number = np.repeat(rng.permutation(len(classes)), _DRAWS), len(classes)
    other = rng.random(len(own)) >= ratio / (ratio + number - 1)
    drawn = (own + other * rng.integers(1, max(2, number), len(own))) % max(1, number)
    starts = np.cumsum(counts) - counts
    rows = np.argsort(labels, kind="stable")[starts[drawn] + rng.integers(0, counts[drawn])]
    return _of_segments(f"label_shift:{ratio:g}", labels, _each(names, severity), lambda _: rows)


def forgetting(
    labels: np.ndarray, names: Sequence[str] = STANDARD, severity: float = 5, seed: int | None = None
) -> Stream:
    """Shows all images under each corruption in turn, and clean after each."""
    segments = [segment for corrupted in _each(names, severity) for segment in (corrupted, Segment(()))]
    return _of_segments("forgetting", labels, segments, _order(seed))


_ALL = (
    *(continual, gradual, gradual_from_1, mixed),
    *(correlated, correlated_slots, mixed_correlated, label_shift, forgetting),
)
KINDS: dict[str, Callable[..., Stream]] = {kind.__name__: kind for kind in _ALL}
PLAIN = ("continual", "gradual", "gradual_from_1", "forgetting")
"""Kinds whose images may come in stored order."""


def _each(names: Sequence[str], severity: float) -> list[Segment]:
    return [Segment(((name, severity),)) for name in names]


def _order(seed: int | None) -> Callable[[np.ndarray], np.ndarray]:
    """Gives the order of the images of each segment: as stored, or shuffled by a seed."""
    if seed is None:
        return lambda labels: np.arange(len(labels))
    rng = np.random.default_rng(seed)
    return lambda labels: rng.permutation(len(labels))


def _of_segments(
    name: str, labels: np.ndarray, segments: Sequence[Segment], order: Callable[[np.ndarray], np.ndarray]
) -> Stream:
    labels, number = np.asarray(labels), len(labels)
    if not number or not segments:
        raise ValueError(f"expected images and corruptions for a stream, found {number} and {len(segments)}")
    images = [np.asarray(order(labels), np.int32) for _ in segments]
    segment = np.repeat(np.arange(len(segments), dtype=np.int32), len(images[0]))
    shifts = np.arange(0, len(segment), len(images[0]), dtype=np.int32)
    return Stream(name, tuple(segments), np.concatenate(images), segment, shifts)


def by_class(labels: np.ndarray, delta: float, rng: np.random.Generator) -> np.ndarray:
    """Orders images by class: stably sorted with delta 0, else `dirichlet`."""
    if not delta >= 0:
        raise ValueError(f"expected delta of at least 0, found {delta}")
    return dirichlet(labels, delta, rng) if delta else np.argsort(labels, kind="stable")


def dirichlet(labels: np.ndarray, delta: float, rng: np.random.Generator) -> np.ndarray:
    """Orders images so that neighbours have related classes: a permutation int [N].

    With C classes there are C chunks. A class spreads its images over them by shares ~ Dirichlet(delta, ..., delta),
    none to a chunk that holds N / C images already; a draw with a chunk of fewer than 10 images (or than half of N / C)
    is drawn again, up to 1,000 times (then a ValueError). Within a chunk classes are contiguous, in random order. delta
    is above 0; a small one gives a strong correlation.
    """
    labels = np.asarray(labels)
    classes = np.unique(labels)
    number, chunks = len(labels), len(classes)
    least = min(_LEAST, number // (2 * chunks))
    for _ in range(_TRIES):
        held = [[] for _ in range(chunks)]
        for one in classes:
            rows, shares = rng.permutation(np.flatnonzero(labels == one)), rng.dirichlet(np.full(chunks, delta))
            room = np.array([sum(map(len, parts)) < number / chunks for parts in held])
            shares = shares * room
            # All shares may vanish in floating point, or belong to full chunks: then chunks with room get equal shares.
            shares = shares / shares.sum() if shares.sum() > 0 else room / room.sum()
            for parts, rows_of in zip(held, _shared_out(rows, shares), strict=True):
                parts.append(rows_of)
        if min(sum(map(len, parts)) for parts in held) >= least:
            return np.concatenate([parts[k] for parts in held for k in rng.permutation(chunks)])
    raise ValueError(
        f"expected a Dirichlet draw with at least {least} images in each of {chunks} chunks, found none in {_TRIES} draws "
        f"with delta {delta:g}; take a larger delta or more images"
    )


def slots(labels: np.ndarray, delta: float, rng: np.random.Generator) -> np.ndarray:
    """Orders images as RoTTA does: a permutation int [N].

    With C classes there are min(C, 100) slots. A class spreads its images over them by shares ~ Dirichlet(delta, ...,
    delta), however full a slot is, so that slots may be empty. Within a slot classes are contiguous, in random order.

    Raises:
      ValueError: delta of 0 or less.
    """
    if not delta > 0:
        raise ValueError(f"expected delta above 0 for slots, found {delta}")
    labels = np.asarray(labels)
    classes = np.unique(labels)
    number = min(len(classes), _SLOTS)
    of_class = []
    for one in classes:
        shares = rng.dirichlet(np.full(number, delta))
        # With a tiny delta all shares may vanish in floating point: then one slot takes the class.
        shares = shares if shares.sum() > 0 else np.eye(number)[rng.integers(number)]
        of_class.append(_shared_out(rng.permutation(np.flatnonzero(labels == one)), shares / shares.sum()))
    return np.concatenate([of_class[k][slot] for slot in range(number) for k in rng.permutation(len(classes))])


def _shared_out(rows: np.ndarray, shares: np.ndarray) -> list[np.ndarray]:
    """Cuts rows at the rounded-down cumulative shares; the last part takes the rest."""
    return np.split(rows, (np.cumsum(shares) * len(rows)).astype(int)[:-1])


def neighbours(labels: np.ndarray) -> float:
    """Measures the correlation of a stream: the share of images with the same class as the image before."""
    labels = np.asarray(labels)
    return float(np.mean(labels[1:] == labels[:-1])) if len(labels) > 1 else 0.0
