"""Scores of one model: accuracy, robustness, corruption error (CE) and its mean (mCE).

The literature calls two formulas "CE" (raw: Hendrycks and Dietterich; relative: their Relative CE,
printed as "CE" by Laugros et al.). Both are always computed here, and labelled.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.references import PREFIX, benchmark_members, default_reference

_SMALL_DENOMINATOR = 0.05


def accuracy(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes correct / total in [0, 1]; arrays broadcast. Refuses total < 1 and correct outside
    0..total.
    """
    correct, total = np.asarray(correct, float), np.asarray(total, float)
    if np.any(total < 1) or np.any(correct < 0) or np.any(correct > total):
        raise ValueError(
            f"expected 0 <= correct <= total and total >= 1, found correct {correct.tolist()}, total {total.tolist()}"
        )
    return correct / total


def standard_error(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes the binomial standard error sqrt(p (1 - p) / total) of p = correct / total."""
    p = accuracy(correct, total)
    return np.sqrt(p * (1 - p) / np.asarray(total, float))


def robustness(corrupted_accuracy, clean_accuracy):
    """R = A_c / A_0: the model's accuracy on a corruption over its own clean accuracy.

    Source: Laugros et al., robustness score. Arrays broadcast. Refuses a clean accuracy of 0.
    """
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    if np.any(clean == 0):
        raise ValueError("expected a clean accuracy above 0, found 0: robustness is undefined")
    return corrupted / clean


def robustness_standard_error(corrupted_accuracy, clean_accuracy, number, clean_number=None):
    """SE(R), SE^2 = R^2 [(1 - A_c) / (N A_c) + (1 - A_0) / (N_0 A_0)], by the delta method.

    The two accuracies are taken as independent; measured on the same images they are positively
    correlated, so this is on the safe side. `number`: test images N; `clean_number`: N_0, default
    N.
    """
    ratio = robustness(corrupted_accuracy, clean_accuracy)
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    number = np.asarray(number, float)
    clean_number = number if clean_number is None else np.asarray(clean_number, float)
    if np.any(number < 1) or np.any(clean_number < 1):
        raise ValueError(f"expected at least 1 test image, found {number} and {clean_number}")
    # R^2 multiplied in, so that A_c = 0 needs no division.
    variance = corrupted * (1 - corrupted) / number + ratio**2 * clean * (1 - clean) / clean_number
    return np.sqrt(variance) / clean


def corruption_error(errors, reference_errors):
    """Raw CE = 100 sum_s E_s / sum_s E_ref,s, in percent; `errors` one per severity, in [0, 1].

    Source: Hendrycks and Dietterich, Benchmarking Neural Network Robustness, equation for CE.
    """
    errors, reference_errors = _severities(errors, reference_errors)
    if reference_errors.sum() <= 0:
        raise ValueError("expected reference errors above 0, found only 0")
    return float(100 * errors.sum() / reference_errors.sum())


def relative_corruption_error(errors, clean_error, reference_errors, reference_clean_error):
    """Relative CE = 100 sum_s (E_s - E_clean) / sum_s (E_ref,s - E_ref,clean), in percent.

    The clean error is subtracted at every severity (the draft prints the formula without the
    parentheses; only this reading gives its numbers). Refuses a denominator that is not positive.
    """
    errors, reference_errors = _severities(errors, reference_errors)
    clean_error, reference_clean = _fractions(clean_error), _fractions(reference_clean_error)
    denominator = (reference_errors - reference_clean).sum()
    if denominator <= 0:
        raise ValueError(
            "expected the reference to lose accuracy under the corruption, found mean error "
            f"{reference_errors.mean():.4f} and clean error {reference_clean:.4f}"
        )
    return float(100 * (errors - clean_error).sum() / denominator)


class BenchmarkScore(NamedTuple):
    """Raw and relative corruption error of one model on one benchmark, in percent.

    Attributes:
      benchmark: what was scored.
      reference: the network whose errors it is divided by.
      error: corruption -> mean error over severities, in percent.
      raw: corruption -> raw CE.
      relative: corruption -> relative CE.
      raw_se: corruption -> standard error of the raw CE (NaN without a number of test images).
      relative_se: corruption -> standard error of the relative CE, likewise.
      mce: plain mean of the raw CE over the corruptions.
      relative_mce: plain mean of the relative CE.
      mce_se: standard error of `mce`.
      relative_mce_se: standard error of `relative_mce`.
      mean_error: unnormalised mean error in percent (what CIFAR-C papers report).
      weak: corruptions whose reference loses less than .05 (relative CE is then unreliable).
    """

    benchmark: str
    reference: str
    error: dict[str, float]
    raw: dict[str, float]
    relative: dict[str, float]
    raw_se: dict[str, float]
    relative_se: dict[str, float]
    mce: float
    relative_mce: float
    mce_se: float
    relative_mce_se: float
    mean_error: float
    weak: tuple[str, ...]


def mean_corruption_error(errors, clean_error, *, benchmark="imagenet_c", reference=None, number=None):
    """Raw and relative CE for each corruption of a benchmark, and their means mCE.

    Standard errors count binomial noise over the test images. Every severity shows the same images,
    so errors are taken as fully correlated between conditions (SE of a sum = sum of the SEs) and,
    in the relative CE, as uncorrelated with the clean error: upper bounds, not exact values.

    Args:
      errors: corruption -> {severity: error} or one error per severity, errors in [0, 1]. Exactly
        the corruptions of the benchmark, by plain or qualified name.
      clean_error: the model's error on clean images.
      benchmark: `imagenet_c` (15), `imagenet_c_extra` (4) or `imagenet_noc` (8).
      reference: an `analysis.references.Reference`; None is AlexNet's published one.
      number: test images per severity, for the standard errors.

    Raises:
      ValueError: missing, unknown or foreign corruptions, and missing or unknown severities, by
        name.
    """
    members = benchmark_members(benchmark)
    reference = default_reference(benchmark) if reference is None else reference
    table = complete_errors(errors, benchmark, reference.severities)
    absent = [name for name in members if name not in reference.errors]
    if absent:
        raise ValueError(f"expected reference errors of {list(members)}, found none for {absent}")
    raw, relative, raw_se, relative_se, weak = {}, {}, {}, {}, []
    noise = np.nan if number is None else 1 / number
    for name in members:
        reference_error, error = np.asarray(reference.errors[name]), table[name]
        raw[name] = corruption_error(error, reference_error)
        relative[name] = relative_corruption_error(error, clean_error, reference_error, reference.clean)
        variance, clean_variance = error * (1 - error) * noise, clean_error * (1 - clean_error) * noise
        drop = (reference_error - reference.clean).sum()
        raw_se[name] = float(100 * np.sqrt(variance).sum() / reference_error.sum())
        relative_se[name] = float(100 * np.sqrt(variance + clean_variance).sum() / drop)
        if drop / len(reference_error) < _SMALL_DENOMINATOR:
            weak.append(name)
    return BenchmarkScore(
        benchmark,
        reference.name,
        {name: float(100 * error.mean()) for name, error in table.items()},
        raw,
        relative,
        raw_se,
        relative_se,
        *(float(np.mean(list(d.values()))) for d in (raw, relative, raw_se, relative_se)),
        100 * unnormalised_mean_error(table),
        tuple(weak),
    )


def unnormalised_mean_error(errors):
    """Mean over corruptions of the mean error over severities, in [0, 1]: the score of CIFAR-10-C.

    `errors`: corruption -> {severity: error} or one error per severity; all with as many
    severities.
    """
    table = {name: _values(by_severity) for name, by_severity in errors.items()}
    if not table or len({len(by_severity) for by_severity in table.values()}) != 1:
        lengths = {name: len(by_severity) for name, by_severity in table.items()}
        raise ValueError(f"expected the same severities for every corruption, found {lengths}")
    return float(np.mean([_fractions(by_severity).mean() for by_severity in table.values()]))


def complete_errors(errors, benchmark, severities):
    """Errors by plain name, arrays in the order of `severities`; refuses all but the whole
    benchmark.
    """
    members, prefix = benchmark_members(benchmark), PREFIX[benchmark]
    plain = {}
    for name, by_severity in errors.items():
        short = name.removeprefix(prefix)
        if short in plain:
            raise ValueError(f"expected every corruption once, found {short!r} by two names")
        plain[short] = by_severity
    foreign, missing = sorted(set(plain) - set(members)), [m for m in members if m not in plain]
    if foreign or missing:
        extra = " (the extras are never averaged with the 15)" if benchmark == "imagenet_c" else ""
        raise ValueError(
            f"expected exactly the {len(members)} corruptions of {benchmark}{extra}, "
            f"found {foreign} besides them and {missing} missing"
        )
    table = {}
    for name in members:
        by_severity = plain[name]
        if isinstance(by_severity, Mapping):
            absent = [s for s in severities if s not in by_severity]
            unknown = [s for s in by_severity if s not in severities]
            if absent or unknown:
                raise ValueError(
                    f"{name}: expected severities {list(severities)}, found {absent} missing and {unknown} besides them"
                )
            by_severity = [by_severity[s] for s in severities]
        by_severity = _fractions(_values(by_severity))
        if by_severity.shape != (len(severities),):
            raise ValueError(
                f"{name}: expected {len(severities)} errors, one per severity {list(severities)}, "
                f"found shape {by_severity.shape}"
            )
        table[name] = by_severity
    return table


def _values(errors):
    return np.atleast_1d(list(errors.values()) if isinstance(errors, Mapping) else errors)


def _fractions(values):
    values = np.asarray(values, float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"expected fractions in [0, 1] (not percent), found {values.tolist()}")
    return values


def _severities(errors, reference_errors):
    errors = _fractions(np.atleast_1d(errors))
    reference_errors = _fractions(np.atleast_1d(reference_errors))
    if errors.shape != reference_errors.shape or errors.ndim != 1:
        raise ValueError(
            f"expected one error per severity of the reference, shape {reference_errors.shape}, found {errors.shape}"
        )
    return errors, reference_errors
