"""comparison.json: how two studies of the same corruptions agree."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.comparison import studies
from analysis.overlap.files import MeasuredOverlap, read_measured
from analysis.shapes import TIMING
from runtime.files import read_json, without_nan
from runtime.provenance import record_inputs

_SWEEP = np.round(np.arange(0, 1.0001, 0.05), 2).tolist()


def compare_studies(first: pathlib.Path, second: pathlib.Path, threshold: float) -> tuple[dict[str, Any], str]:
    """Compares the overlaps in two workdirs, and the benchmarks that are selected from each.

    Args:
      first, second: workdirs with overlap.csv, overlap_long.csv and, for the training time,
        timing.json.
      threshold: largest overlap between two members of the benchmarks that are listed.

    Returns:
      (content of comparison.json, text for people).

    Raises:
      FileNotFoundError, ValueError: a missing or broken table, or studies of other corruptions.
    """
    first_study, second_study = _read_study(first), _read_study(second)
    if set(first_study.names) != set(second_study.names):
        only = sorted({*first_study.names} ^ {*second_study.names})
        raise ValueError(f"expected studies of the same corruptions, found only in one: {', '.join(only)}")
    second_study = second_study.ordered(first_study.names)
    agreement = studies.agreement(
        first_study.unclipped,
        second_study.unclipped,
        first_study.names,
        first_se=first_study.se,
        second_se=second_study.se,
    )
    benchmarks = studies.benchmark_agreement_sweep(
        first_study.overlap,
        second_study.overlap,
        first_study.names,
        sorted({*_SWEEP, threshold}),
        first_unclipped=first_study.unclipped,
        second_unclipped=second_study.unclipped,
    )
    seconds = _training_seconds(first, second)
    content = {
        "first": first.name,
        "second": second.name,
        **_record((first, second), "overlap.csv"),
        "matrices": without_nan(agreement),
        "threshold": threshold,
        "benchmarks": [b._asdict() for b in benchmarks],
        "training_seconds": seconds,
    }
    return content, _studies_text(agreement, threshold, benchmarks, seconds)


def _read_study(workdir) -> MeasuredOverlap:
    study = read_measured(workdir / "overlap.csv")
    if study.se is None:
        raise FileNotFoundError(f"expected a table at {workdir / 'overlap_long.csv'}, found no file")
    return study


def _record(folders, name):
    return record_inputs({f"{folder.name}/{name}": folder / name for folder in folders})


def _training_seconds(first, second):
    """Seconds of training, in each study, of the models that both have; None when not recorded.

    The standard model does not count: either way of training the others needs it.
    """
    paths = [workdir / "timing.json" for workdir in (first, second)]
    if not all(path.is_file() for path in paths):
        return None
    seconds = [read_json(path, shape=TIMING)["training_seconds"] for path in paths]
    shared = [model for model in seconds[0] if model in seconds[1] and not model.startswith("standard|")]
    return [sum(by_model[model] for model in shared) for by_model in seconds] if shared else None


def _studies_text(
    agreement: studies.Agreement,
    threshold: float,
    benchmarks: Sequence[studies.BenchmarkAgreement],
    seconds: Sequence[float] | None,
) -> str:
    low, high = agreement.spearman_interval
    at_threshold = next(b for b in benchmarks if b.threshold == threshold)
    lines = [
        f"{agreement.pairs} pairs of corruptions; undefined in one of the two: {', '.join(agreement.dropped) or 'none'}",
        f"Spearman {agreement.spearman:.3f} (95 % interval {low:.3f} to {high:.3f}), Pearson {agreement.pearson:.3f}",
        f"mean absolute difference {agreement.mean_difference:.3f}; root mean square difference "
        f"{agreement.standardised:.1f} of its standard errors (about 1: no difference but noise)",
        "",
        f"benchmarks at threshold {threshold}: {len(at_threshold.shared)} shared, Jaccard {at_threshold.jaccard:.2f}",
        f"  first:  {', '.join(at_threshold.first)}   ({at_threshold.first_in_second} in the second matrix)",
        f"  second: {', '.join(at_threshold.second)}   ({at_threshold.second_in_first} in the first matrix)",
        "Jaccard by threshold: " + ", ".join(f"{b.threshold:.2f}: {b.jaccard:.2f}" for b in benchmarks),
    ]
    if seconds:
        lines.append(f"training time {seconds[0]:.0f} s and {seconds[1]:.0f} s: {seconds[0] / seconds[1]:.1f} times")
    return "\n".join(lines)
