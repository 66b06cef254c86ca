"""What tools.natural_shift prints and writes: a study as Markdown."""

from collections.abc import Iterable, Sequence

from analysis.natural_shift.benchmarks import Bin
from analysis.natural_shift.prediction import Prediction
from analysis.natural_shift.resampling import Estimate
from analysis.natural_shift.study import Study
from analysis.natural_shift.table import TITLES
from analysis.rounding import fixed, percent

UNITS = "drop r, clean as a fraction"
_UNITS_NOTE = (
    f"“{UNITS}” repeats an error of the published code: clean accuracy counts from 0 to 1 and the others in percent, so "
    "clean accuracy is not subtracted and r is nearly that of the accuracies themselves. For comparison with its numbers "
    "only."
)


def study_text(study: Study, published_units: bool = False) -> str:
    """Writes all tables of a study; intervals are over resampled models.

    Args:
      study: of `analysis.natural_shift.study.study`.
      published_units: with a column that repeats the error in units of the published code.
    """
    parts = [_facts(study), _from_clean(study), _together(study), _lines(study)]
    if study.benchmark:
        parts += [
            "## The benchmark as predictor\n",
            f"Mean of {len(study.members)} corruptions: {', '.join(map(_short, study.members))}.\n",
            predictions_table(study.benchmark, published_units),
            "\n## One corruption as predictor: drop r\n",
            _by_corruption(study, "drop"),
            "\n## One corruption as predictor: beyond clean accuracy\n",
            _by_corruption(study, "partial"),
            "\n## One corruption as predictor: effective robustness\n",
            _by_corruption(study, "effective"),
            _leaders(study),
        ]
    if study.bins:
        parts += ["\n## Benchmarks of n categories and k corruptions each\n", *_benchmarks(study)]
    return "\n".join(parts)


def predictions_table(rows: Iterable[Prediction], published_units: bool = False) -> str:
    """Writes how well a benchmark predicts each shift, a line each."""
    header = ["shift", "models", "drop r", "p", "drop r, same classes", "Spearman", "beyond clean accuracy"]
    header += ["effective robustness", "shown"] + ([UNITS] if published_units else [])
    lines = []
    for row in rows:
        cells = [title(row.shift), row.models, interval(row.drop), f"{row.drop_p:.1g}", interval(row.drop_matched)]
        cells += [interval(row.spearman), interval(row.partial), interval(row.effective), row.shown]
        lines.append(cells + ([interval(row.published_units)] if published_units else []))
    return markdown(header, lines) + (f"\n\n{_UNITS_NOTE}" if published_units else "")


def bins_table(bins: Iterable[Bin], shifts: Sequence[str]) -> str:
    """Writes the mean correlation of benchmarks by categories, size and balance, a line each."""
    header = ["categories", "of each", "corruptions", "spread", "benchmarks", "mean r", *map(title, shifts)]
    lines = [
        [
            *(row.categories, row.per_category, row.size, f"{row.spread:.1f}", row.benchmarks, interval(row.mean)),
            *(fixed(row.correlation[shift].value, 3) for shift in shifts),
        ]
        for row in bins
    ]
    return markdown(header, lines)


def interval(estimate: Estimate, places: int = 2) -> str:
    """Writes `.65 (.54 to .74)`, a dash where undefined."""
    text = fixed(estimate.value, places)
    known = estimate.low == estimate.low
    return f"{text} ({fixed(estimate.low, places)} to {fixed(estimate.high, places)})" if known else text


def title(shift: str) -> str:
    """Names a shift as people do."""
    return TITLES.get(shift, shift)


def markdown(header: Sequence[str], rows: Iterable[Sequence], other: str = "---:") -> str:
    """Writes a table; the first column is text, the others are numbers, or as `other` says."""
    lines = [f"| {' | '.join(header)} |", "|---|" + f"{other}|" * (len(header) - 1)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


def _short(name):
    return name.rpartition("/")[2].replace("_", " ")


def _facts(study):
    lines = [
        f"{study.source}: {study.models} models, {study.complete} with every accuracy that is compared. 95 % intervals from "
        f"{study.resamples} resamples of the models.\n"
    ]
    if study.standard < 2:
        lines.append(
            f"No effective robustness: it takes a line through standard models, found {study.standard} (--types names "
            "them).\n"
        )
    if not study.members:
        lines.append("No corruptions in this table: only clean accuracy is compared with natural shifts.\n")
    return "\n".join(lines)


def _from_clean(study):
    header = ["shift", "models", "Pearson", "Spearman", "r² of logits, same classes"]
    rows = [
        [title(row.shift), row.models, interval(row.pearson, 3), interval(row.spearman, 3), interval(row.r2, 3)]
        for row in study.from_clean
    ]
    return "## Clean accuracy as predictor\n\n" + markdown(header, rows) + "\n"


def _together(study):
    rows = [[f"{title(row.first)}, {title(row.second)}", interval(row.correlation)] for row in study.together]
    if not rows:
        return ""
    return "## Are two shifts one? Correlation beyond clean accuracy\n\n" + markdown(["shifts", "r"], rows) + "\n"


def _lines(study):
    if study.standard < 2:
        return ""
    header = ["shift", "slope", "intercept", "r²", "models", "left out (0 or 100 %)"]
    rows = [
        [
            title(shift) + (f", {line.part} the pivot" if line.part else ""),
            *(fixed(value, 4) for value in (line.slope, line.intercept)),
            *(fixed(line.r2, 3), line.models, line.dropped),
        ]
        for shift, lines in study.lines.items()
        for line in lines
    ]
    text = (
        f"logit(accuracy under the shift) = slope logit(clean) + intercept over {study.standard} standard models; effective "
        f"robustness of the {study.shown} others is what they have beyond it.\n"
    )
    return f"## Lines of the standard models\n\n{text}\n{markdown(header, rows)}\n"


def _by_corruption(study, measure):
    found = {(row.benchmark, row.shift): getattr(row, measure) for row in study.corruptions}
    rows = [[_short(name), *(interval(found[name, shift]) for shift in study.shifts)] for name in study.members]
    return markdown(["corruption", *map(title, study.shifts)], rows)


def _leaders(study):
    best = study.leaders[0]
    others = ", ".join(f"{_short(row.corruption)} {fixed(row.mean.value, 2)}" for row in study.leaders[1:4])
    return (
        f"\nBest single predictor by drop r, averaged over the shifts: **{_short(best.corruption)}** {interval(best.mean)}, "
        f"first in {percent(best.first)} of the resamples; next {others or 'none'}."
    )


def _benchmarks(study):
    rows = [[number, ", ".join(map(_short, names))] for number, names in enumerate(study.categories, 1)]
    effects = study.effects
    best = max(study.bins, key=lambda row: row.mean.value)
    yield markdown(["category", "corruptions"], rows, "---") + "\n"
    yield bins_table(study.bins, study.shifts)
    yield (
        f"\nBest: {best.categories} categories, {best.size} corruptions, spread {best.spread:.1f}: mean r "
        f"{interval(best.mean)}. Least-squares plane through these lines: {_slope(effects.categories)} for one more "
        f"category, {_slope(effects.size)} for one more corruption, {_slope(effects.spread)} for a spread larger by 1."
    )


def _slope(estimate):
    low, high = fixed(estimate.low, 3, sign=True), fixed(estimate.high, 3, sign=True)
    return f"{fixed(estimate.value, 3, sign=True)} ({low} to {high})"
