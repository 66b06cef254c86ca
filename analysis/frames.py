"""Tables as tidy pandas frames, a row for each measurement; and numbers as text, with the digits that their errors leave.

    counts      model,seed,corruption,severity,correct,total                       sums of the answers
    scores      the same and accuracy, error, R = A_c / A_0, with standard errors

Every table is made here and written by `write` (CSV), `markdown` or `latex`. Tables are results: no command of ours
reads one. `pandas.read_csv` loads them unchanged.
"""

import math
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from runtime.workdirs import Workdir

if TYPE_CHECKING:  # it imports JAX, which tables and selections do not need
    from corruptions.scoring.counts import Count

CLEAN = "clean"
NATURAL = "natural/"  # before the name of a natural shift, which is a condition too
OF_CLASSES = "clean/"  # before the same name: clean images of the same classes


def is_corruption(condition: str) -> bool:
    """Returns True for a corruption, False for clean images and for natural shifts."""
    return condition != CLEAN and not condition.startswith((NATURAL, OF_CLASSES))


STANDARD = "standard"
RANDOM = "random"
_MISSING = ("nan", "none", "null", "na", "n/a", "<na>", "-nan", "#n/a")
_NAME = re.compile(r"[^\s,\"'#]+")


Key = tuple[str, int]
"""(model, seed): the corruption or scheme that it was trained with, or `standard`; the seed of the training, at least 0."""
Counted = tuple[Key, "Count"]
"""A model, and its correct answers under a condition: a row of counts.csv."""
COUNTS = ("model", "seed", "corruption", "severity", "correct", "total")
"""The columns of counts.csv."""


def check_model_name(name: str) -> None:
    """Checks a name that a user gives a model; ValueError for one that files, spreadsheets or pandas would not give back."""
    _check_name("model", name)
    if not name.isprintable() or name[0] in "=+-@" or name.lower() in _MISSING:
        raise ValueError(
            f"expected a model name of printable characters, that no table takes for a formula or a missing value, found {name!r}"
        )


def _check_name(what, name):
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"expected a {what} name without commas, quotes, # or white space, found {name!r}")


def check_count(key: Key, count: "Count") -> Counted:
    """Checks a count of a model and normalises its severity (None is `random`, or 0 for clean).

    Raises ValueError for a name that a table cannot hold, a severity that does not fit, or counts outside 0 <= correct
    <= total, total >= 1.
    """
    (model, seed), (corruption, severity, correct, total) = key, count
    _check_name("model", model)
    _check_name("corruption", corruption)
    seed, correct, total = int(seed), int(correct), int(total)
    if seed < 0:
        raise ValueError(f"expected a seed >= 0, found {seed}")
    if total < 1 or not 0 <= correct <= total:
        raise ValueError(f"expected 0 <= correct <= total and total >= 1, found correct {correct}, total {total}")
    if severity is None:
        severity = 0 if corruption == CLEAN else RANDOM
    if isinstance(severity, str):
        valid = severity == RANDOM
    else:
        severity = severity.item() if hasattr(severity, "item") else severity
        valid = isinstance(severity, int | float) and math.isfinite(severity) and severity >= 0
    if not valid:
        raise ValueError(f"expected a severity that is a level, a fraction or 'random', found {severity!r}")
    if corruption == CLEAN and severity != 0:
        raise ValueError(f"expected severity 0 for clean images, found {severity!r}")
    if corruption == CLEAN:
        severity = 0
    return (model, seed), count._replace(severity=severity, correct=correct, total=total)


def accuracy(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes correct / total in [0, 1]; arrays broadcast. Refuses total < 1 and correct outside 0..total."""
    correct, total = np.asarray(correct, float), np.asarray(total, float)
    if np.any(total < 1) or np.any(correct < 0) or np.any(correct > total):
        raise ValueError(
            f"expected 0 <= correct <= total and total >= 1, found correct {correct.tolist()}, total {total.tolist()}"
        )
    return correct / total


def intervals():
    """Imports `corruptions.scoring.intervals`, and so JAX, which tables and selections without standard errors do not need."""
    from corruptions.scoring import intervals

    return intervals


def standard_error(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes the standard error of correct / total, see `corruptions.scoring.intervals`."""
    return intervals().of_accuracy(accuracy(correct, total), total)


def robustness(corrupted_accuracy: ArrayLike, clean_accuracy: ArrayLike) -> np.ndarray:
    """Computes R = A_c / A_0, the accuracy of a model on a corruption over its own clean accuracy.

    Source: Laugros et al., robustness score. Arrays broadcast. Refuses a clean accuracy of 0.
    """
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    if np.any(clean == 0):
        raise ValueError("expected a clean accuracy above 0, found 0: robustness is undefined")
    return corrupted / clean


def robustness_standard_error(
    corrupted_accuracy: ArrayLike, clean_accuracy: ArrayLike, number: ArrayLike, clean_number: ArrayLike | None = None
) -> np.ndarray:
    """Computes SE(R), SE^2 = (SE(A_c)^2 + R^2 SE(A_0)^2) / A_0^2, by the delta method.

    The two accuracies A_c and A_0, in [0, 1], are taken as independent, of N and N_0 test images; None is N. On the
    same images they are positively correlated, so SE(R) is an upper bound.
    """
    ratio = robustness(corrupted_accuracy, clean_accuracy)
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    number = np.asarray(number, float)
    clean_number = number if clean_number is None else np.asarray(clean_number, float)
    if np.any(number < 1) or np.any(clean_number < 1):
        raise ValueError(f"expected at least 1 test image, found {number} and {clean_number}")
    of_accuracy = intervals().of_accuracy
    return np.hypot(of_accuracy(corrupted, number), ratio * of_accuracy(clean, clean_number)) / clean


def _fractions(values):
    values = np.asarray(values, float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"expected fractions in [0, 1] (not percent), found {values.tolist()}")
    return values


SEVERITY = "severity"  # a level, a fraction or `random`: a column that keeps the type of each value
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # control characters and ends of lines
# Columns, code, emphasis and escapes; HTML tags and entities; links; underscores that are not within a word; struck text.
_MARKDOWN = re.compile(r"[|`*\\]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<=\])\(|(?<!\w)_|_(?!\w)|~(?=~)")
_HTML = {"<": "&lt;", "&": "&amp;"}
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "\N{MINUS SIGN}": "$-$",
}
_MOST, _WITHOUT_ERROR = 4, 3  # decimals: the most, and the number if no error is known
_MINUS, _SPACE = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"


def of_rows(rows: Iterable[Sequence], columns: Sequence[str]) -> pd.DataFrame:
    """Makes a frame of tuples; the column `severity` keeps whole numbers, fractions and text side by side."""
    frame = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
    return frame.assign(**{name: frame[name].infer_objects() for name in columns if name != SEVERITY})


def of_counts(counts: Iterable[Counted]) -> pd.DataFrame:
    """Makes the frame of counts.csv."""
    return of_rows(((*key, *count) for key, count in counts), COUNTS)


def scores(counts: Iterable[Counted]) -> pd.DataFrame:
    """Makes the frame of scores.csv: a row for each count and in its order. R of clean images is 1 with SE 0; R of a model
    with clean accuracy 0 is NaN.

    Raises ValueError for a model and seed without a clean row.
    """
    frame = of_counts(counts)
    clean = frame[frame.corruption == CLEAN].set_index(["model", "seed"])[["correct", "total"]]
    whole = frame.join(clean.add_suffix("_clean"), on=["model", "seed"])
    if (missing := whole.total_clean.isna()).any():
        model, seed = whole.loc[missing.idxmax(), ["model", "seed"]]
        raise ValueError(f"expected a clean row of model {model!r}, seed {seed} (R is relative to it), found none")
    value = accuracy(whole.correct, whole.total)
    se = standard_error(whole.correct, whole.total)
    base = accuracy(whole.correct_clean, whole.total_clean)
    known, ratio, ratio_se = base > 0, *np.full((2, len(base)), np.nan)
    of_known = value[known], base[known]
    ratio[known] = robustness(*of_known)
    ratio_se[known] = robustness_standard_error(*of_known, whole.total[known], whole.total_clean[known])
    ratio_se[known & (frame.corruption == CLEAN)] = 0
    columns = {"accuracy": value, "accuracy_se": se, "error": 1 - value, "error_se": se, "R": ratio, "R_se": ratio_se}
    return frame.assign(**columns)


def classes(correct: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Makes the frame of classes.csv: class, images, accuracy and its 95 % interval (Wilson), of each class that has images.

    `correct`, bool [N], says which images are answered correctly, whose classes are `labels`, int [N], called `names`.
    """
    rows = []
    for label, name in enumerate(names):
        of_class = correct[labels == label]
        if of_class.size:
            interval = np.clip(intervals().wilson(of_class.mean(), of_class.size), 0, 1).tolist()
            rows.append((as_name(name), of_class.size, float(of_class.mean()), *interval))
    return of_rows(rows, ("class", "images", "accuracy", "low", "high"))


def percentile_interval(samples: ArrayLike, level: float = 0.95, known: float = 0.0) -> tuple[float, float]:
    """Computes the ends of the central part, `level` in (0, 1), of a resampled statistic: (lower, upper).

    Samples are NaN where a resample does not define the statistic. With fewer than a part `known` of them defined, or
    none, the ends are NaN.
    """
    samples = np.asarray(samples, float)
    defined = samples[~np.isnan(samples)]
    if not len(defined) or len(defined) < known * len(samples):
        return math.nan, math.nan
    lower, upper = np.percentile(defined, [50 * (1 - level), 50 * (1 + level)])
    return float(lower), float(upper)


def spread_over_seeds(values: Sequence[float]) -> float:
    """Computes the standard deviation (n - 1) between seeds; NaN of one seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def write(path: str | pathlib.Path, frame: pd.DataFrame, origin: str = "") -> None:
    """Writes a table as CSV, atomically: floats in their shortest exact form, `nan` where there is no number.

    `origin` says where it comes from, for provenance.json of the same folder, under `files`.
    """
    path = pathlib.Path(path)
    Workdir(path.parent).write_csv(path.name, frame, **({"origin": " ".join(origin.split())} if origin else {}))


def markdown(frame: pd.DataFrame, bold: np.ndarray | None = None) -> str:
    """Writes a frame of plain text, which is escaped, as a Markdown table, the `bold` cells, [rows, columns], in bold.

    The first column is left-aligned and the others right-aligned.
    """
    head, *rows = (f"| {' | '.join(line)} |" for line in _cells(frame, bold, markdown_escaped, "**{}**"))
    return "\n".join([head, "|---|" + "---:|" * (frame.shape[1] - 1), *rows])


def _cells(frame, bold, escaped, bold_form):
    """Yields the titles and the rows of a frame, each a list of escaped cells."""
    yield [escaped(str(title)) for title in frame.columns]
    bold = np.zeros(frame.shape, bool) if bold is None else bold
    for cells, is_bold in zip(frame.to_numpy().tolist(), bold, strict=True):
        pairs = zip(map(escaped, map(str, cells)), is_bold, strict=True)
        yield [bold_form.format(cell) if strong else cell for cell, strong in pairs]


def markdown_escaped(words: str) -> str:
    """Writes text so that Markdown shows it as it is, inside a table too: no columns, HTML, links or emphasis of its own."""
    return _MARKDOWN.sub(lambda match: _HTML.get(match[0], "\\" + match[0]), _BREAKS.sub(" ", words))


def text(frame: pd.DataFrame) -> str:
    """Writes a frame of text in aligned columns, the first one left-aligned and the others right-aligned."""
    lines = [list(map(str, line)) for line in (frame.columns, *frame.to_numpy().tolist())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


def latex(frame: pd.DataFrame, caption: str, bold: np.ndarray | None = None) -> str:
    """Writes a frame of plain text as a LaTeX table with booktabs, the caption below it, both escaped.

    Cells that are `bold`, [rows, columns], are set in bold.
    """
    lines = [" & ".join(line) + r" \\" for line in _cells(frame, bold, latex_escaped, r"\textbf{{{}}}")]
    head, *rows = lines
    parts = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (frame.shape[1] - 1)}}}"]
    parts += [r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*parts, rf"\caption{{{latex_escaped(caption)}}}", r"\end{table}", ""])


def latex_escaped(words: str) -> str:
    """Writes text so that LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in _BREAKS.sub(" ", words))


def as_name(words: str) -> str:
    """Spells text as one word: each run of white space, commas, quotes and `#` becomes `_`."""
    return re.sub(r"[\s,\"'#]+", "_", words)


def decimals(se: float | None) -> int:
    """Counts the decimals of a value: up to the first digit of its standard error, or the second one where the first is
    1; 3 where no error is known, 4 at most.
    """
    if se is None or not math.isfinite(se) or se <= 0:
        return _WITHOUT_ERROR
    first_digit = -math.floor(math.log10(se))
    return min(max(first_digit + (round(se * 10**first_digit, 1) < 2), 0), _MOST)


def fixed(value: float | None, places: int, sign: bool = False) -> str:
    """Writes a number with `places` decimals and a proper minus, never a negative zero; an undefined number is a dash."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    text = f"{round(value, places) + 0.0:{'+' if sign and round(value, places) else ''}.{places}f}"
    return text.replace("-", _MINUS)


def with_error(value: float | None, se: float | None, sign: bool = False) -> str:
    """Writes `0.85 ± 0.06`: value and standard error, rounded alike, with spaces that do not break."""
    if value is None or not math.isfinite(value):
        return "undefined"
    places = decimals(se)
    text = fixed(value, places, sign)
    return text if se is None or not math.isfinite(se) else f"{text}{_SPACE}±{_SPACE}{fixed(se, places)}"


def compact(value: float | None, se: float | None) -> tuple[str, str]:
    """Writes (`.85`, `±.06`) for the cell of a matrix: at most two decimals and no zero before the point."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}", ""
    places = min(decimals(se), 2)
    error = "" if se is None or not math.isfinite(se) or se == 0 else "±" + bare(fixed(se, places))
    text = fixed(value, places)
    return (text.split(".")[0] if float(text.replace(_MINUS, "-")) in (0, 1) else bare(text)), error


def percent(fraction: float) -> str:
    """Writes a fraction of resamples as a percentage: whole, with one decimal below 1 % and above 99 %."""
    value = 100 * fraction
    return f"{value:.{int(0 < value < 1 or 99 < value < 100)}f}{_SPACE}%"


def bare(text: str) -> str:
    """Writes a number without the 0 before its point: -.5."""
    sign, digits = (text[0], text[1:]) if text[0] == _MINUS else ("", text)
    return sign + (digits[1:] if digits.startswith("0.") else digits)
