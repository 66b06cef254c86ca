"""The tables of docs/coverage.md as Markdown, and the page that holds them."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis import figures, frames
from analysis.frames import STANDARD, fixed, with_error
from analysis.overlap import Overlap
from analysis.selection.algorithm import Stability
from analysis.selection.benchmark import COVERED, NOT_COVERED, NOT_SHOWN
from projects.coverage.tables import GAINS, LOSES, UNSHOWN
from training import augmentation


def models(table: pd.DataFrame) -> str:
    """Lists the standard model and the mixtures, and in one row the models that were trained with a candidate each."""
    candidate = ~(table.model.eq(STANDARD) | table.model.str.startswith(augmentation.MIXTURE))
    names = table.model.where(~candidate, f"a candidate ({table.model[candidate].nunique()} of them)")
    rows = []
    for name, of_name in table.groupby(names, sort=False):
        seeds = of_name.groupby("model").seed.nunique()
        rows.append((name, _range(seeds, 0), _range(of_name.clean_accuracy, 3), _range(of_name.mean_robustness, 3)))
    return frames.markdown(frames.of_rows(rows, ("trained with", "seeds", "clean accuracy", "mean R")))


def _range(values, places):
    """Writes the smallest and the largest value, or the value that all have."""
    least, most = fixed(values.min(), places), fixed(values.max(), places)
    return least if least == most else f"{least} to {most}"


def candidates(table: pd.DataFrame) -> str:
    """Averages the candidates of each benchmark."""
    rows = []
    for benchmark, of in table.groupby(table.corruption.str.split("/").str[0], sort=False):
        trained = of.own_gain.notna().sum()
        own = f"{fixed(of.own_gain.mean(), 2, sign=True)} (of {trained})" if trained else "-"
        numbers = fixed(of.robustness.mean(), 2), fixed(of.ece.mean(), 3), fixed(of.nll.mean(), 2)
        rows.append((benchmark, str(len(of)), _range(of.robustness, 2), *numbers, own))
    columns = ("candidates of", "number", "R", "mean R", "mean ECE", "mean NLL", "mean own gain")
    return frames.markdown(frames.of_rows(rows, columns))


def confidence(table: pd.DataFrame) -> str:
    likeness = {"loss": "correlation of the rises in loss over images", "ece": "nearness of the calibration errors"}
    rows = [
        (likeness[row.likeness], str(row.pairs), fixed(row.spearman, 2), f"{fixed(row.low, 2)} to {fixed(row.high, 2)}")
        for row in table.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("likeness", "pairs", "rank correlation with overlap", "95 %")))


def mixtures(table: pd.DataFrame) -> str:
    """Counts the verdicts on the candidates outside of each mixture."""
    rows = []
    for mixture, of_mixture in table[table.member == 0].groupby("mixture", sort=False):
        counted = of_mixture.verdict.value_counts()
        numbers = (str(counted.get(verdict, 0)) for verdict in (GAINS, UNSHOWN, LOSES))
        mean = fixed(of_mixture.gain.mean(), 3, sign=True)
        rows.append((augmentation.benchmark(mixture), str(len(of_mixture)), *numbers, mean))
    columns = ("trained with all of", "candidates outside", *(GAINS, UNSHOWN, LOSES), "mean gain in R")
    return frames.markdown(frames.of_rows(rows, columns))


def outside(table: pd.DataFrame) -> str:
    """Lists the candidates outside of each mixture that its model is not shown to gain on, worst first."""
    left = table[(table.member == 0) & (table.verdict != GAINS)].sort_values(["mixture", "gain"])
    rows = [
        (augmentation.benchmark(row.mixture), row.corruption, with_error(row.gain, row.se, sign=True), row.verdict)
        for row in left.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("trained with all of", "corruption", "gain in R", "verdict")))


def benchmarks(table: pd.DataFrame) -> str:
    """Counts for each benchmark the candidates outside of it that it covers, and names the others."""
    rows = []
    for benchmark, of_benchmark in table.groupby("benchmark", sort=False):
        named = {verdict: ", ".join(of.corruption) for verdict, of in of_benchmark.groupby("verdict")}
        covered = str((of_benchmark.verdict == COVERED).sum())
        left = (named.get(verdict, "-") for verdict in (NOT_SHOWN, NOT_COVERED))
        rows.append((benchmark, str(len(of_benchmark)), covered, *left))
    return frames.markdown(frames.of_rows(rows, ("covered by", "candidates outside", COVERED, NOT_SHOWN, NOT_COVERED)))


def balance(table: pd.DataFrame) -> str:
    rows = [
        (
            row.benchmark,
            str(row.members),
            with_error(row.mean_overlap, row.mean_overlap_se),
            with_error(row.std, row.std_se),
            f"{row.categories} of {row.of}",
            fixed(row.imbalance, 2),
        )
        for row in table.itertuples()
    ]
    columns = ("benchmark", "members", "mean overlap", "std of mean R", "categories", "imbalance")
    return frames.markdown(frames.of_rows(rows, columns))


def published(table: pd.DataFrame) -> str:
    rows = [
        (
            row.benchmark,
            str(row.pairs),
            f"{fixed(row.spearman, 2)} ({fixed(row.low, 2)} to {fixed(row.high, 2)})",
            f"{fixed(row.pearson, 2)} ({fixed(row.pearson_low, 2)} to {fixed(row.pearson_high, 2)})",
        )
        for row in table.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("benchmark", "pairs", "rank correlation", "correlation")))


def selected(members: Sequence[str], stability: Stability, overlap: Overlap) -> str:
    """Lists the selected members: the gain of the model trained with each on it, and how many resamples select it."""
    gains = dict(zip(overlap.names, overlap.gain, strict=True))
    rows = [
        (name, fixed(gains[name], 2, sign=True), f"{100 * stability.members.get(name, 0):.0f} %") for name in members
    ]
    return frames.markdown(frames.of_rows(rows, ("selected", "own gain", "of resamples")))


def mixtures_figure(table: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(table.corruption))
    panels = []
    for mixture, of_mixture in table.groupby("mixture", sort=False):
        of = of_mixture.set_index("corruption").loc[names]
        mark = ["" if row.member == 0 else "member" for row in of.itertuples()]
        title = f"gain in R, {augmentation.benchmark(mixture)}"
        panels.append(figures.Panel(title, of.gain.to_numpy(), texts=mark, se=of.se.to_numpy()))
    figure, _ = figures.bars(names, panels, title="Models trained with a whole benchmark")
    return figure


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Puts Markdown tables between the lines `<!-- table NAME -->` and `<!-- end -->` of a page.

    Raises:
      ValueError: the page asks for a table that the study does not have yet; names it and those there are.
    """

    def put(match):
        if match[1] not in tables:
            raise ValueError(f"expected one of the tables {', '.join(tables)} in the page, found {match[1]!r}")
        return f"<!-- table {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- table (\w+) -->.*?<!-- end -->", put, page, flags=re.S)
