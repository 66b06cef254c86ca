"""Part of a report: does robustness to corruptions predict robustness to natural shifts?"""

from collections.abc import Mapping
from typing import Any

from analysis.natural_shift.resampling import Estimate
from analysis.natural_shift.text import interval, title
from analysis.report.html import Html, data_uri, join, table, tag
from analysis.rounding import fixed, percent

_MEASURES = {
    "drop": "drop r",
    "spearman": "Spearman",
    "partial": "beyond clean accuracy",
    "effective": "effective robustness",
}


def natural_part(content: Mapping[str, Any] | None, pictures: Mapping[str, bytes]) -> Html | None:
    """Shows natural_shift.json: the benchmark as predictor of each shift, the best single
    corruption, benchmarks by categories, and the figures that are there.

    Args:
      content: of the file, or None.
      pictures: {name: PNG} of tools.natural_shift.
    """
    if content is None:
        return None
    facts = [
        f"{content['source']}: {content['complete']} of {content['models']} models have every accuracy; 95 % intervals are "
        f"over {content['resamples']} resamples of the models. Clean accuracy alone, r² of logits: "
        + ", ".join(f"{title(row['shift'])} {_value(row['r2'])}" for row in content["from_clean"])
        + "."
    ]
    if content["leaders"]:
        best = content["leaders"][0]
        facts.append(
            f"Best single corruption, by the correlation of what models lose to it and to the shifts: {best['corruption']}, "
            f"{_interval(best['mean'])}, first in {percent(best['first'])} of the resamples."
        )
    if content["bins"] and content["effects"]:
        best, effects = max(content["bins"], key=lambda row: row["mean"][0]), content["effects"]
        facts.append(
            f"Best benchmarks: {best['categories']} categories, {best['size']} corruptions, spread {best['spread']:.1f}, mean r "
            f"{_interval(best['mean'])}. One more category is worth {_interval(effects['categories'], 3)}, one more "
            f"corruption {_interval(effects['size'], 3)}, a spread larger by 1 {_interval(effects['spread'], 3)}."
        )
    rows = [
        (title(row["shift"]), (row["models"], "number"), *((_interval(row[name]), "number") for name in _MEASURES))
        for row in content["benchmark"]
    ]
    header = ("shift", ("models", "number"), *((name, "number") for name in _MEASURES.values()))
    shown = [tag("img", src=data_uri(picture), alt=f"Natural shifts: {name}") for name, picture in pictures.items()]
    return join(
        (
            tag("h3", "Natural shifts"),
            *(tag("p", fact) for fact in facts),
            table(header, rows, label="The benchmark as predictor of natural shifts") if rows else None,
            *(tag("p", picture) for picture in shown),
        )
    )


def _interval(numbers, places=2):
    return interval(Estimate(*(float("nan") if number is None else number for number in numbers)), places)


def _value(numbers):
    return fixed(numbers[0], 3)
