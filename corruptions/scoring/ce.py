"""Corruption errors: the errors of a classifier relative to a reference network's errors.

    CE_c  = sum_s E_cs / sum_s E_cs(reference)                                        mCE: its mean over a benchmark
    rCE_c = sum_s (E_cs - E_clean) / sum_s (E_cs(reference) - E_clean(reference))     relative CE

E_cs is the top-1 error under corruption c at severity s. D. Hendrycks, T. Dietterich, "Benchmarking Neural Network
Robustness to Common Corruptions and Perturbations" (2019), section 4.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from corruptions import registry
from corruptions.scoring.conditions import CLEAN
from corruptions.scoring.folder import Count

ALEXNET = "alexnet"
ALEXNET_FILE = pathlib.Path(__file__).with_name("alexnet.json")
"""AlexNet's published errors by the prefix of corruptions: {"imagenet_c": {"clean", "severities", "errors"}, ...}."""
_HOLD = (
    "AlexNet's errors hold for ImageNet's 1,000 classes at 224x224 pixels. CE of other images says nothing beside published\n"
    "ones; ce_table(counts, reference=COUNTS_OF_ANOTHER_CLASSIFIER) compares classifiers on them."
)
_Errors = Mapping[int | float | str, tuple[float, float]]
"""The published errors of a corruption: {severity: (error, clean error)}."""


class CE(NamedTuple):
    """The errors under a corruption, or their means over a benchmark, as fractions; NaN where there is no reference.

    Attributes:
      name: `clean`, a corruption or a benchmark.
      error: top-1 error, a mean over the severities.
      error_se: its standard error. All conditions show the same images, so it is at most the mean of their
        standard errors; this mean is given.
      ce: corruption error, mCE for a benchmark.
      ce_se: its standard error, the reference taken as exact.
      relative_ce: relative corruption error.
    """

    name: str
    error: float
    error_se: float
    ce: float = math.nan
    ce_se: float = math.nan
    relative_ce: float = math.nan


@dataclasses.dataclass(frozen=True, repr=False)
class CETable:
    """Errors, CE and mCE; as text a table in percent.

    Attributes:
      reference: name of the reference.
      rows: `clean`, each corruption, then each benchmark all of whose corruptions were evaluated.
    """

    reference: str
    rows: tuple[CE, ...]

    def __repr__(self) -> str:
        lines = [f"{'percent, CE relative to ' + self.reference:44s}{'error':>13s}{'CE':>14s}{'relative CE':>13s}"]
        for row in self.rows:
            cells = _percent(row.error, row.error_se), _percent(row.ce, row.ce_se), _percent(row.relative_ce)
            lines.append(f"{row.name:44s}{cells[0]:>13s}{cells[1]:>14s}{cells[2]:>13s}")
        if self.reference == ALEXNET:
            lines.append(_HOLD)
        return "\n".join(lines)


def ce_table(counts: Iterable[Count], reference: str | Iterable[Count] = ALEXNET) -> CETable:
    """Computes errors, CE and mCE of counts of `evaluate`; `print` shows them as a table.

    Args:
      counts: of `evaluate`, with clean images.
      reference: `alexnet`, whose published errors hold for ImageNet's validation images at 224 pixels: ImageNet-C at
        levels, the candidates of ImageNet-NOC at random severities in their published ranges. Or counts of another
        classifier under the same conditions.

    Raises:
      ValueError: no clean images, or another reference.
    """
    by_corruption: dict[str, list[Count]] = {}
    for count in counts:
        by_corruption.setdefault(count.corruption, []).append(count)
    if CLEAN not in by_corruption:
        raise ValueError("expected counts with clean images, as corruptions.evaluate gives them, found none")
    if isinstance(reference, str) and reference != ALEXNET:
        raise ValueError(f'expected reference="{ALEXNET}" or counts of corruptions.evaluate, found {reference!r}')
    name, errors = (ALEXNET, _alexnet()) if isinstance(reference, str) else ("the other classifier", _of(reference))
    (clean,) = by_corruption.pop(CLEAN)[:1]
    rows = {name: _row(name, of_one, clean.error, errors.get(name, {})) for name, of_one in by_corruption.items()}
    means = [_mean(benchmark, rows) for benchmark in registry.benchmarks()]
    of_clean = CE(CLEAN, clean.error, _standard_error(clean))
    return CETable(name, (of_clean, *rows.values(), *(mean for mean in means if mean)))


def _alexnet() -> Mapping[str, _Errors]:
    content = json.loads(ALEXNET_FILE.read_text(encoding="utf-8"))
    return {
        f"{prefix}/{name}": {s: (error, of["clean"]) for s, error in zip(of["severities"], errors, strict=True)}
        for prefix, of in content.items()
        if isinstance(of, dict)
        for name, errors in of["errors"].items()
    }


def _of(counts: Iterable[Count]) -> Mapping[str, _Errors]:
    counts = list(counts)
    clean = [count.error for count in counts if count.corruption == CLEAN]
    if not clean:
        raise ValueError("expected a reference with clean images, found counts without them")
    errors: dict[str, dict] = {}
    for count in counts:
        errors.setdefault(count.corruption, {})[count.severity] = count.error, clean[0]
    return errors


def _row(name, counts, clean, reference):
    error = sum(count.error for count in counts) / len(counts)
    error_se = sum(map(_standard_error, counts)) / len(counts)
    if not all(count.severity in reference for count in counts):
        return CE(name, error, error_se)
    of_reference = [reference[count.severity] for count in counts]
    scale = sum(pair[0] for pair in of_reference) / len(counts)
    lost = scale - of_reference[0][1]
    relative = (error - clean) / lost if lost else math.nan
    return CE(name, error, error_se, error / scale, error_se / scale, relative) if scale else CE(name, error, error_se)


def _mean(benchmark, rows):
    """Averages the rows of a benchmark; None where one is missing."""
    members = registry.names(benchmark)
    if not all(name in rows for name in members):
        return None
    columns = list(zip(*(rows[name][1:] for name in members), strict=True))
    return CE(f"{benchmark}, mean of {len(members)}", *(sum(column) / len(members) for column in columns))


def _standard_error(count):
    return math.sqrt(count.error * (1 - count.error) / count.total)


def _percent(value, error=None):
    if not math.isfinite(value):
        return "-"
    return f"{100 * value:.1f}" + ("" if error is None else f" +- {100 * error:.1f}")
