"""Means over test images with their standard errors, and what divides them: every table of errors and CE is made of these."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from corruptions.scoring.intervals import of_mean

LEAST = 0.01
"""The smallest mean rise of a reference's error that relative CE divides by."""


class Value(NamedTuple):
    """A mean over test images and its standard error; NaN where there is none.

    Attributes:
      value: the number.
      se: its standard error over test images.
      images: float64 [N], what each image gives, whose mean is the number; None where it is not known.
      most: the most that an image can give.
      paired: whether an image gives a difference of two such numbers.
    """

    value: float = math.nan
    se: float = math.nan
    images: np.ndarray | None = None
    most: float = math.nan
    paired: bool = False

    @classmethod
    def from_images(cls, images: np.ndarray, most: float, paired: bool = False) -> Self:
        """Makes it from one number for each image; undefined where one of them is."""
        if not np.isfinite(images).all():
            return cls()
        return cls(float(images.mean()), of_mean(images, most, paired), images, most, paired)


def average(values: Sequence[Value]) -> Value:
    """Averages numbers of the same images; an undefined one makes the mean undefined.

    Where the numbers of the images are not known, the standard error is the mean of all, an upper bound.
    """
    images = [number.images for number in values if number.images is not None]
    if len(images) < len(values):
        return Value(
            float(np.mean([number.value for number in values])), float(np.mean([number.se for number in values]))
        )
    most = float(np.mean([number.most for number in values]))
    return Value.from_images(np.mean(images, axis=0), most, values[0].paired)


class Divisors(NamedTuple):
    """The errors of a reference, by which those of a classifier under a corruption are divided.

    Attributes:
      error: mean error of the reference over the severities; NaN where it is 0, or not known.
      rise: the same less its clean error; NaN where that is less than `LEAST`.
    """

    error: float = math.nan
    rise: float = math.nan

    @classmethod
    def from_errors(cls, errors: Sequence[float], clean: float) -> Self:
        """Makes them from the errors of a reference, one for each severity, and its clean error, all in [0, 1]."""
        mean = sum(errors) / len(errors)
        rise = mean - clean
        return cls(mean if mean > 0 else math.nan, rise if rise >= LEAST else math.nan)

    def measures(self, wrong: np.ndarray, clean: Any, unit: float = 1.0) -> list[Value]:
        """Computes error, CE and relative CE.

        Args:
          wrong: float64 [N], share of the severities at which each image is classified wrongly.
          clean: float64 [N], 1 where the clean image is; NaN without clean answers to the same images.
          unit: 100 for percent.
        """
        images = self._scaled(wrong, clean)
        most = 1.0, 1 / self.error, 1 / self.rise
        paired = False, False, True
        return [Value.from_images(unit * of, unit * m, p) for of, m, p in zip(images, most, paired, strict=True)]

    def bounds(self, error: float, clean: float, error_se: float, clean_se: float) -> list[Value]:
        """Computes the same from the mean error over the severities and the clean error, with upper bounds of the
        standard errors.
        """
        ses = error_se, error_se / self.error, (error_se + clean_se) / self.rise
        return [Value(value, se) for value, se in zip(self._scaled(error, clean), ses, strict=True)]

    def _scaled(self, error: Any, clean: Any) -> tuple[Any, Any, Any]:
        return error, error / self.error, (error - clean) / self.rise
