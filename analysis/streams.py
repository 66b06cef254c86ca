"""Error over time of methods on a stream: numbers, and a picture, from predicted classes."""

import itertools
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from analysis.figures import set_titles

COLOURS = (
    *("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"),
    *("#E69F00", "#999999", "#8B4513", "#4B0082", "#808000"),
)
_POINTS, _WINDOW = 60, 50


def error(wrong: np.ndarray, image: np.ndarray) -> tuple[float, float]:
    """Computes the error p in percent and its standard error over test images.

    A stream shows an image once for each corruption, and its answers are alike. With the answers w[t] in {0, 1}, T of
    them to N images,

        se = 100 / T sqrt(N / (N - 1) sum_i (sum over the times t of image i of (w[t] - p))^2)

    Images are taken as independent; those of a batch that an adapted network answers are not quite.

    Args:
      wrong: bool [T].
      image: int [T], the image of each answer.

    Returns:
      (p, se); se is NaN for a single image.
    """
    _, of_image = np.unique(image, return_inverse=True)
    sums = np.bincount(of_image, weights=wrong - np.mean(wrong))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.float64(len(sums)) / (len(sums) - 1) * np.sum(sums**2)
    return 100 * float(np.mean(wrong)), 100 * float(np.sqrt(variance)) / len(wrong)


def by_segment(wrong: np.ndarray, segment: np.ndarray, number: int) -> np.ndarray:
    """Computes the error of each condition in percent, float64 [number]; NaN of one that no image has."""
    counts = np.bincount(segment, minlength=number)
    with np.errstate(invalid="ignore"):
        return 100 * np.bincount(segment, weights=wrong, minlength=number) / counts


def fewest_classes(predictions: np.ndarray, batch: int) -> int:
    """Counts the classes in the batch with the fewest: 1 is collapse. An incomplete last batch is left out."""
    whole = predictions[: len(predictions) // batch * batch].reshape(-1, batch)
    if not len(whole):
        return len(np.unique(predictions))
    ordered = np.sort(whole, axis=1)
    return int(1 + (ordered[:, 1:] != ordered[:, :-1]).sum(1).min()) if batch > 1 else 1


def over_time(wrong: np.ndarray, points: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Computes the error in windows of equal length: (times of their middles, percent); 60 windows of 50 images or more."""
    points = points or max(2, min(_POINTS, len(wrong) // _WINDOW))
    ends = np.linspace(0, len(wrong), min(points, len(wrong)) + 1).astype(int)
    values = [100 * np.mean(wrong[start:stop]) for start, stop in itertools.pairwise(ends)]
    return (ends[:-1] + ends[1:]) / 2, np.array(values)


def picture(wrong: Mapping[str, np.ndarray], shifts: np.ndarray, title: str, provenance: str = "") -> Figure:
    """Draws the error of each method over a stream, {method: bool [T]}, and the times `shifts` at which the condition
    changes, as thin lines unless they are many.

    Raises ValueError for no method, or more than there are colours. Title and provenance are those of `set_titles`.
    """
    if not 0 < len(wrong) <= len(COLOURS):
        raise ValueError(f"expected 1 to {len(COLOURS)} methods in a picture, found {len(wrong)}")
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    for (name, of_method), colour in zip(wrong.items(), COLOURS, strict=False):
        axes.plot(*over_time(of_method), color=colour, linewidth=1.2, label=f"{name} {100 * np.mean(of_method):.1f}")
    if len(shifts) <= _POINTS:
        for shift in shifts[1:]:
            axes.axvline(shift, color="#d0d7de", linewidth=0.5, zorder=0)
    axes.set_xlabel("image of the stream", fontsize=8)
    axes.set_ylabel("error, %", fontsize=8)
    axes.set_ylim(0, 100)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    look = {"fontsize": 7, "title_fontsize": 7, "frameon": False, "title": "method, mean"}
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), **look)
    set_titles(axes, title, provenance)
    return figure
