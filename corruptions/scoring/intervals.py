"""Standard errors that hold with few images, and where all images, or none, are answered correctly.

The deviation of N equal answers is 0, which would make one image certain. So an accuracy has E. B. Wilson's interval
("Probable Inference, the Law of Succession, and Statistical Inference", 1927), with z = 1.96

    (m + z^2 / 2n +- z sqrt(m (1 - m) / n + z^2 / 4n^2)) / (1 + z^2 / n),

and its standard error is the larger distance of m to an end, over z: m +- 1.96 standard errors hold what Wilson's interval
holds. The difference of two answers to the same image has that of the images and of three more, of which 1.5 have different
answers, after A. Agresti, Y. Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions" (2005), who add
two and one. With many images all are the deviation over sqrt(N). `benchmarks/results/intervals.md` has the share of true
values that they hold.
"""

from typing import Any

import numpy as np

Z = 1.959964
"""The 97.5th percentile of a normal distribution."""
LEAST = 20
"""Fewer images are too few: tables say so, and the gains of an overlap study count as weak."""


def too_few(number: int) -> list[str]:
    """The sentence about fewer than `LEAST` images, in a list; an empty one about others."""
    return [f"{number} test images are too few for these numbers: {LEAST} are the fewest"] if number < LEAST else []


def wilson(mean: Any, number: Any) -> tuple[np.ndarray, np.ndarray]:
    """Computes Wilson's 95 % interval, (low, high), of means in [0, 1] of so many images; arrays broadcast."""
    mean, number = np.asarray(mean, float), np.asarray(number, float)
    centre = mean + Z**2 / (2 * number)
    half = Z * np.sqrt(mean * (1 - mean) / number + Z**2 / (4 * number**2))
    return (centre - half) / (1 + Z**2 / number), (centre + half) / (1 + Z**2 / number)


def of_accuracy(accuracy: Any, number: Any) -> np.ndarray:
    """Computes the standard error of accuracies, or of errors, in [0, 1] on so many images; arrays broadcast."""
    low, high = wilson(accuracy, number)
    return np.maximum(accuracy - low, high - accuracy) / Z


def of_mean(images: np.ndarray, most: float = 1.0, paired: bool = False) -> float:
    """Computes the standard error of a mean over images of one number each, [N].

    The numbers lie between 0 and `most`, such as the share of several severities that are answered wrongly; the error is
    that of an accuracy on N / f images, with f the variance of the numbers over that of right and wrong answers of their
    mean m, m (1 - m), each with one image more. `paired` ones lie between -most and most: differences of two such numbers.
    """
    share, number = np.asarray(images, float) / most, len(images)
    if paired:
        square, mean = (float(np.sum(share**2)) + 1.5) / (number + 3), float(np.sum(share)) / (number + 3)
        return float(most * np.sqrt((square - mean**2) / (number + 3)))
    mean = min(max(float(np.mean(share)), 0.0), 1.0)
    excess = (number * float(np.var(share)) + 1) / (number * mean * (1 - mean) + 1)
    return float(most * of_accuracy(mean, number / excess))
