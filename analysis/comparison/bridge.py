"""bridge.json: how well distances between features predict measured overlaps, from the files of
both.
"""

import pathlib
from typing import Any

import numpy as np

from analysis.comparison import feature_distances, prediction
from analysis.comparison.studies import Agreement
from analysis.distances.by_scheme import mean_distances
from analysis.distances.files import read_centres, read_msd
from analysis.overlap.files import MeasuredOverlap
from analysis.tables import CLEAN


def read_distances(folder: pathlib.Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Reads the distances between corruptions from a folder of tools.msd: {what is measured: [n,
    n]}.

    Directions are only known where the features of clean images are stored; older results lack
    them.

    Raises:
      FileNotFoundError, ValueError: no such results, or of other corruptions.
    """
    centres = read_centres(folder / "features.npz")
    distances = {
        "centre distance": feature_distances.centre_distances(centres, names),
        "minimal sample distance": feature_distances.msd_distances(mean_distances(read_msd(folder / "msd.csv")), names),
    }
    if (CLEAN, 0) in centres:
        distances["direction"] = feature_distances.direction_distances(centres, names)
    return distances


def judge(
    measured: MeasuredOverlap, label: str, distance: np.ndarray, threshold: float, resamples: int
) -> tuple[dict[str, Any], str]:
    """Judges one distance as a predictor of overlap.

    Args:
      measured: overlaps of n corruptions.
      label: what the distance is.
      distance: symmetric [n, n].
      threshold: largest overlap between two members of a benchmark.
      resamples: resamples of the corruptions behind the interval.

    Returns:
      (entry of bridge.json, text for people).
    """
    names, overlap = measured.names, measured.overlap
    unclipped = overlap if measured.unclipped is None else measured.unclipped
    agreement = prediction.rank_agreement(unclipped, distance, names, resamples=resamples)
    predicted = prediction.predicted_overlap(overlap, distance)
    comparison = prediction.compare_selections(overlap, predicted, names, threshold)
    numbers = comparison._asdict()
    entry = {
        "spearman": agreement.spearman,
        "spearman_interval": agreement.spearman_interval,
        "pairs": agreement.pairs,
        "benchmarks": numbers.pop("benchmarks")._asdict(),
        **numbers,
    }
    return entry, _text(label, agreement, comparison)


def _text(label: str, agreement: Agreement, comparison: prediction.Comparison) -> str:
    low, high = agreement.spearman_interval
    return "\n".join(
        [
            f"{label}: Spearman of nearness and overlap {agreement.spearman:.2f} (95 % interval {low:.2f} to {high:.2f}, "
            f"{agreement.pairs} pairs)",
            f"  from the prediction: {', '.join(comparison.benchmarks.first)}",
            f"  from measurements:   {', '.join(comparison.benchmarks.second)}",
            f"  mean overlap of the predicted benchmark {comparison.mean_overlap:.3f} (predicted "
            f"{comparison.predicted_overlap:.3f}; measured best {comparison.best_overlap:.3f}; random sets of its size "
            f"{comparison.random_mean:.3f} +- {comparison.random_std:.3f}, of which {100 * comparison.random_better:.1f} % are "
            f"as good); {comparison.violations} pairs above the threshold, largest {comparison.largest_overlap:.2f}",
        ]
    )
