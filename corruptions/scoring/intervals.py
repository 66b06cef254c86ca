"""Standard errors that hold with few images, and where all images, or none, are answered correctly.

The deviation of N equal answers is 0, which would make one image certain. So an accuracy m is given c right and c wrong images
more, two in small sets (as A. Agresti and B. Coull, "Approximate Is Better than 'Exact' for Interval Estimation of Binomial
Proportions", 1998), over N images:

    c = 1.75 + 5.2 / N        p = (N m + c) / (N + 2 c)        error = sqrt(p (1 - p) / N)

Tables with two ends have Wilson's interval (`wilson`). A mean over severities has the error of an accuracy on more images
(`of_mean`).

The mean d of differences d[i] of two answers to the same image has c more images that differ from it by 1. Near d = 1 an
image that does not follow may differ from it by 2: by as much as such images are among those that do not follow, half a one
of them more, the added images count fourfold:

    error = sqrt(sum_i (d[i] - d)^2 + c + 6 d^2 w) / N        w = (m + 1/2) / (N - M + 1/2)

with M and m the larger and the smaller of the sums of positive and of negative differences. For d near 0 these are about the
added counts of D. G. Bonett and R. M. Price ("Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based
on Paired Data", 2012). With many images all are the deviation over sqrt(N). The numbers 1.75 and 5.2 are about the least for
which 1.96 errors hold what follows, found by the exact shares of `benchmarks.intervals`.

1.96 errors hold 90 % of true values or more from 20 images on, and 92 to 98 % from 100 on. They hold up to 100 % of rare
answers, of which 2.6 or fewer are expected, and up to 98.5 % of those of which 4.0 to 4.2 are. Every error that holds 92 % does,
nearly: one that covers the true value from the smallest counts covers it from all that are likely. Differences hold as much at
two more places (`benchmarks/results/intervals.md` has both).
"""

from typing import Any

import numpy as np

Z = 1.959964
"""The 97.5th percentile of a normal distribution."""
LEAST = 20
"""Fewer images are too few: tables say so, and the gains of an overlap study count as weak."""

_LOWEST = (0.0512933, 0.3553615, 0.8176914)
"""Expected numbers under which 1, 2, 3 or more are found 5 % of the time (Poisson)."""


def too_few(number: int) -> list[str]:
    """The sentence about fewer than `LEAST` images, in a list; an empty one about others."""
    return [f"{number} test images are too few for these numbers: {LEAST} are the fewest"] if number < LEAST else []


def wilson(mean: Any, number: Any) -> tuple[np.ndarray, np.ndarray]:
    """Computes a 95 % interval, (low, high), of means in [0, 1] of so many right and wrong answers; arrays broadcast.

    It is Wilson's, with z = 1.96

        (m + z^2 / 2N +- z sqrt(m (1 - m) / N + z^2 / 4N^2)) / (1 + z^2 / N),

    whose low end for 1 to 3 right answers, and high end for as many wrong ones, lies too near: it holds 89.4 % at accuracies
    near .01 of 50 images. There the end is that of a Poisson count after L. Brown, T. Cai, A. DasGupta ("Interval Estimation
    for a Binomial Proportion", 2001).
    """
    mean, number = np.asarray(mean, float), np.asarray(number, float)
    centre = mean + Z**2 / (2 * number)
    half = Z * np.sqrt(mean * (1 - mean) / number + Z**2 / (4 * number**2))
    low, high = (centre - half) / (1 + Z**2 / number), (centre + half) / (1 + Z**2 / number)
    right = np.rint(mean * number)
    for found, expected in enumerate(_LOWEST, 1):
        inside = (right > 0) & (right < number)
        low = np.where(inside & (right == found), np.minimum(low, expected / number), low)
        high = np.where(inside & (number - right == found), np.maximum(high, 1 - expected / number), high)
    return low, high


def _added(number):
    """Right, and as many wrong, images that are added to so many."""
    return 1.75 + 5.2 / np.asarray(number, float)


def of_accuracy(accuracy: Any, number: Any) -> np.ndarray:
    """Computes the standard error of accuracies, or of errors, in [0, 1] on so many images; arrays broadcast."""
    accuracy, number = np.asarray(accuracy, float), np.asarray(number, float)
    more = _added(number)
    middle = (accuracy * number + more) / (number + 2 * more)
    return np.sqrt(middle * (1 - middle) / number)


def of_differences(images: np.ndarray, most: Any = 1.0) -> np.ndarray:
    """Computes the standard errors of means over images, [..., N], of differences that lie between -most and most, [...]."""
    share = np.asarray(images, float) / np.asarray(most, float)[..., None]
    more, total = np.sum(np.maximum(share, 0), axis=-1), np.sum(share, axis=-1)
    return most * of_sums(np.sum(share**2, axis=-1), more, more - total, share.shape[-1])


def of_sums(squares: Any, more: Any, less: Any, number: int) -> np.ndarray:
    """Computes the standard errors of means of differences between -1 and 1 from sums over so many images: of their squares,
    of the positive differences, and of the negative ones, as a positive number. Arrays broadcast.

    For 0 and 1 these are the images that differ, those that only the one answers right, and those that only the other does.
    """
    most, least = np.maximum(more, less), np.minimum(more, less)
    opposite = (least + 0.5) / (np.maximum(number - most, least) + 0.5)
    mean = (more - less) / number
    return np.sqrt(squares - number * mean**2 + _added(number) + 6 * mean**2 * opposite) / number


def of_mean(images: np.ndarray, most: float = 1.0, paired: bool = False) -> float:
    """Computes the standard error of a mean over images of one number each, [N].

    The numbers lie between 0 and `most`, such as the share of several severities that are answered wrongly; the error is
    that of an accuracy on N / f images, with f the variance of the numbers over that of right and wrong answers of their
    mean m, m (1 - m), each with a fifth of an image more. `paired` ones lie between -most and most: differences of two such numbers.
    """
    if paired:
        return float(of_differences(images, most))
    share, number = np.asarray(images, float) / most, len(images)
    mean = min(max(float(np.mean(share)), 0.0), 1.0)
    excess = (number * float(np.var(share)) + 0.2) / (number * mean * (1 - mean) + 0.2)
    return float(most * of_accuracy(mean, number / excess))
