"""Continuously changing corruptions: walks from one corruption to another through severities that vary in small steps.

After CCC (O. Press et al., "RDumb: a simple approach that questions our progress in continual test-time adaptation", 2023).
A walk goes from only the first corruption to only the second: each step lowers the severity of the first or raises that
of the second, so that the mean accuracy of the unadapted network along the walk is near a target. At the end the second
corruption becomes the first, and another one is drawn.

Differences from the published streams: the accuracies are measured on the network at hand (its authors' matrix is not
published); severities are 0 and 1 to 5 in steps of .5, as there is no row between clean and 1; images are neither cropped
nor mirrored nor stored as JPEG.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from evaluation.streams.orders import Segment, Stream

GRID = (0.0, *np.arange(1, 5.25, 0.5).tolist())
"""Severities of both corruptions."""


class Walk(NamedTuple):
    """From one corruption to another."""

    # first, second: corruptions
    first: str
    second: str
    path: tuple[tuple[int, int], ...]  # (i, j) of each node, places of both severities in `GRID`
    accuracy: tuple[float, ...]  # percent of the unadapted network at each node


def path(accuracy: np.ndarray, target: float) -> list[tuple[int, int]]:
    """Finds the walk whose mean accuracy is near a target.

    From (i0, 0) each step takes i - 1 or j + 1 until i = 0. Backwards from the end, each node takes the successor with
    which the mean from the node on is nearer to the target (with equal ones j + 1); then the best i0 counts, with equal
    ones the smallest. That is greedy, as in the released code: another walk may be nearer.

    Args:
      accuracy: percent [n, n] at severities i of the first and j of the second corruption.
      target: percent.

    Raises:
      ValueError: accuracies that are no square of finite numbers.
    """
    accuracy = np.asarray(accuracy, float)
    if accuracy.ndim != 2 or len(set(accuracy.shape)) != 1 or len(accuracy) < 2 or not np.isfinite(accuracy).all():
        raise ValueError(f"expected finite accuracies [n, n] with n of at least 2, found {accuracy.shape}")
    size = len(accuracy)
    best = {(0, j): (accuracy[0, j], 1, None) for j in range(size)}  # (sum to the end, nodes to the end, next node)
    for i in range(1, size):
        for j in reversed(range(size)):
            found = []
            for after in ((i, j + 1), (i - 1, j)):  # ties: raise j
                if after in best:
                    total, number, _ = best[after]
                    total, number = total + accuracy[i, j], number + 1
                    found.append((abs(total / number - target), total, number, after))
            _, total, number, after = min(found, key=lambda one: one[0])
            best[i, j] = total, number, after
    start = min(range(1, size), key=lambda i: abs(best[i, 0][0] / best[i, 0][1] - target))
    nodes, node = [], (start, 0)
    while node:
        nodes.append(node)
        node = best[node][2]
    return nodes


def walks(
    names: Sequence[str], number: int, target: float, measure: Callable[[str, str], np.ndarray], seed: int
) -> list[Walk]:
    """Draws corruptions out of two or more names, one after the other, and finds a walk between each two.

    `target` is the mean accuracy along each walk, in percent; `measure` maps (first, second) to accuracies in percent,
    [len(GRID), len(GRID)].
    """
    if len(names) < 2 or number < 1:
        raise ValueError(f"expected two corruptions or more and a walk or more, found {len(names)} and {number}")
    rng = np.random.default_rng(seed)
    found, first = [], names[rng.integers(len(names))]
    for _ in range(number):
        others = [name for name in names if name != first]
        second = others[rng.integers(len(others))]
        accuracy = measure(first, second)
        nodes = path(accuracy, target)
        found.append(Walk(first, second, tuple(nodes), tuple(float(accuracy[node]) for node in nodes)))
        first = second
    return found


def segment(first: str, second: str, node: tuple[int, int]) -> Segment:
    """Makes the condition of a node; a corruption of severity 0 is left out."""
    parts = ((first, GRID[node[0]]), (second, GRID[node[1]]))
    return Segment(tuple((name, severity) for name, severity in parts if severity))


def stream(given: Sequence[Walk], images: int, speed: int, seed: int) -> Stream:
    """Shows `speed` images at each node of the walks, drawn without repeats from the first `images` test images.

    Raises:
      ValueError: more images at a node than there are.
    """
    if not 0 < speed <= images:
        raise ValueError(f"expected 1 to {images} images at a node, the test images at hand, found {speed}")
    rng = np.random.default_rng([seed, 2])
    segments = [segment(walk.first, walk.second, node) for walk in given for node in walk.path]
    image = np.concatenate([rng.permutation(images)[:speed] for _ in segments]).astype(np.int32)
    place = np.repeat(np.arange(len(segments), dtype=np.int32), speed)
    return Stream("ccc", tuple(segments), image, place, np.arange(0, len(image), speed, dtype=np.int32))
