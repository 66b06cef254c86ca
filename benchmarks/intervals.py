"""Which share of true values do the intervals hold? Simulated test sets of which the true values are known.

    python -m benchmarks.intervals [--trials=2000] [--out=benchmarks/results/intervals.md]

Accuracies: Wilson's interval, exactly, at accuracies .01 .. .99. Gains and CE: 1.96 standard errors of
`corruptions.scoring.intervals`. Gains G and overlaps of a study: 1.96 errors of `analysis.overlap.uncertainty`. The answers
to an image correlate over models (.7, or .95 and .3 beside).
"""

from runtime import command  # isort: skip

import itertools

import numpy as np
import pandas as pd
from absl import flags
from scipy import stats

from analysis import frames
from analysis.overlap.score import compute
from analysis.overlap.uncertainty import standard_errors
from corruptions.scoring import intervals
from runtime.files import write_atomically

NUMBERS = (20, 50, 100, 300, 1000)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
DIFFERENCES = ((0.01, 0.02), (0.05, 0.02), (0.5, 0.02), (0.97, 0.02), (0.2, 0.1), (0.5, 0.1), (0.3, 0.6), (0.01, 0.95))
"""(accuracy of one model, gain of another)."""
STUDIES = (
    (0.99, 0.01, 0.02),
    (0.9, 0.05, 0.02),
    (0.9, 0.5, 0.1),
    (0.9, 0.5, 0.3),
    (0.99, 0.95, 0.03),
    (0.95, 0.3, 0.6),
)
"""(clean accuracy, accuracy of the standard model, gain of the models on their own corruption)."""
RESAMPLES = 200


def accuracies(number: int) -> list[float]:
    """Computes the share of test sets whose Wilson interval holds the accuracy, for each of `SHARES`."""
    right = np.arange(number + 1)
    low, high = intervals.wilson(right / number, number)
    held = [(low <= share) & (share <= high) for share in SHARES]
    return [float(stats.binom.pmf(right, number, share)[of].sum()) for share, of in zip(SHARES, held, strict=True)]


def differences(number: int, trials: int, seed: int = 0) -> list[float]:
    """Simulates the share of test sets on which 1.96 errors hold the difference of two models, as of relative CE."""
    rng, held = np.random.default_rng([seed, number]), []
    for (share, gain), alike in itertools.product(DIFFERENCES, (0.95, 0.7, 0.3)):
        right = _answers(rng, np.array([share, share + gain]), number, trials, alike)
        apart = right[:, 1].astype(float) - right[:, 0]
        errors = np.array([intervals.of_mean(of, paired=True) for of in apart])
        held.append(float(np.mean(np.abs(apart.mean(axis=-1) - gain) <= 1.96 * errors)))
    return held


def studies(number: int, trials: int, seed: int = 0) -> tuple[list[float], list[float]]:
    """Simulates the shares of studies whose 1.96 errors hold G, and an overlap that is defined, for each of `STUDIES`."""
    rng, gains, overlaps = np.random.default_rng([seed, number]), [], []
    for clean, standard, gain in STUDIES:
        truth = np.full((3, 3), standard + 0.4 * gain)
        truth[0], truth[[1, 2], [1, 2]], truth[:, 0] = standard, standard + gain, clean
        _, true_gain, _, true_overlap = compute(truth)
        of_gain, of_overlap = [], []
        for bits in _answers(rng, truth, number, trials, 0.7):
            _, found, _, overlap = compute(bits.mean(axis=-1))
            errors = standard_errors(bits[None], RESAMPLES, int(rng.integers(1 << 31)))
            of_gain.append(np.abs(found - true_gain) <= 1.96 * errors.gain)
            if np.isfinite(overlap[0, 1]):
                of_overlap.append(abs(overlap[0, 1] - true_overlap[0, 1]) <= 1.96 * errors.overlap[0, 1])
        gains.append(float(np.nanmean(of_gain)))
        overlaps.append(float(np.mean(of_overlap)) if of_overlap else float("nan"))
    return gains, overlaps


def _answers(rng, truth, number, trials, alike):
    """Right answers, bool [trials, ..., number], of these accuracies, the latent variables of an image correlated."""
    common = rng.normal(size=(trials, *(1,) * truth.ndim, number))
    own = rng.normal(size=(trials, *truth.shape, number))
    return np.sqrt(alike) * common + np.sqrt(1 - alike) * own < stats.norm.ppf(truth)[..., None]


def table(trials: int) -> str:
    """Writes the smallest and largest shares for each number of images as Markdown."""
    rows = []
    for number in NUMBERS:
        of_study = studies(number, max(1, trials // 20))
        of_number = (accuracies(number), differences(number, trials), *of_study)
        rows.append((number, *(f"{100 * np.nanmin(of):.1f} to {100 * np.nanmax(of):.1f}" for of in of_number)))
    columns = ["images", "accuracy (Wilson)", "difference", "gain G", "overlap"]
    return frames.markdown(pd.DataFrame(rows, columns=columns))


def main(argv):
    given = command.given(argv)
    text = table(given.trials)
    print(text)
    if given.out:
        write_atomically(given.out, _PAGE.format(table=text, trials=given.trials, studies=max(1, given.trials // 20)))


_PAGE = """# Shares of true values that nominal 95 % intervals hold

Smallest and largest share, in percent, over accuracies .01 to .99 and gains from .02
(`python -m benchmarks.intervals --trials={trials} --out=benchmarks/results/intervals.md`; accuracies exactly, differences
from {trials} test sets each, studies from {studies}).

{table}

A share above 98 belongs to true values that a few images decide (accuracy .01, gain .02): no interval of whole numbers holds
95 % there. An overlap divides by gains; where these are not clear its error is large, and the corruptions are flagged as weak.
"""

if __name__ == "__main__":
    flags.DEFINE_integer("trials", 2000, "Simulated test sets for each setting; a twentieth of them for studies.")
    flags.DEFINE_string("out", None, "Markdown file of the table.")
    command.run(main)
