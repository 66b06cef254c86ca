"""The tables of docs/coverage.md as Markdown, and the page that holds them."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis import figures, frames
from analysis.frames import STANDARD, bare, fixed, with_error
from analysis.overlap import Overlap
from analysis.selection.algorithm import Stability
from analysis.selection.benchmark import NOT_SHOWN
from projects.coverage.tables import GAINS, LOSES, UNSHOWN
from training import augmentation

PRINTED_MARGINS = (0.0, 0.1, 0.3, 0.5)
LEAST_TRANSFERS = 5


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


def mixtures(table: pd.DataFrame, agreement: pd.DataFrame) -> str:
    """Counts the verdicts on the candidates outside of each mixture, by training and by overlap."""
    rows, counts = [], agreement.set_index("benchmark")
    for mixture, of_mixture in table[table.member == 0].groupby("mixture", sort=False):
        name = augmentation.benchmark(mixture)
        counted = of_mixture.verdict.value_counts()
        numbers = (str(counted.get(verdict, 0)) for verdict in (GAINS, UNSHOWN, LOSES))
        mean = fixed(of_mixture.gain.mean(), 3, sign=True)
        of = counts.loc[name] if name in counts.index else None
        both = ("-", "-") if of is None else (str(of.covered), str(of.not_shown + of.loses))
        rows.append((name, str(len(of_mixture)), *numbers, mean, *both))
    verdicts = (GAINS, UNSHOWN, LOSES)
    columns = ("benchmark", "outside", *verdicts, "mean gain in R", "covered by overlap", "of these without a gain")
    return frames.markdown(frames.of_rows(rows, columns))


def readings(table: pd.DataFrame) -> str:
    """Lists the candidates on which training with a whole benchmark is not shown to gain, beside their overlap, worst first."""
    left = table[table.by_training != GAINS].sort_values(["benchmark", "gain"])
    rows = [
        (
            row.benchmark,
            row.corruption,
            with_error(row.gain, row.gain_se, sign=True),
            row.by_training,
            f"{with_error(row.overlap, row.overlap_se)}, {row.with_member.split('/')[1]}",
            UNSHOWN if row.by_overlap == NOT_SHOWN else row.by_overlap,
        )
        for row in left.itertuples()
    ]
    columns = ("benchmark", "corruption", "gain in R", "by training", "largest overlap, with", "by overlap")
    return frames.markdown(frames.of_rows(rows, columns))


def coverage(table: pd.DataFrame) -> str:
    """Counts for each benchmark what it covers at some margins: measured, and (shown to be above to not shown below)."""
    rows = []
    for benchmark, of in table[table.margin.isin(PRINTED_MARGINS)].groupby("benchmark", sort=False):
        texts = (f"{row.measured} ({row.least} to {row.most})" for row in of.itertuples())
        rows.append((benchmark, str(of.outside.iloc[0]), *texts))
    columns = ("benchmark", "outside", *(f"above {bare(fixed(m, 1)) if m else 0}" for m in PRINTED_MARGINS))
    return frames.markdown(frames.of_rows(rows, columns))


def coverage_figure(table: pd.DataFrame) -> Figure:
    """Draws what share of the candidates outside of each benchmark it covers, by margin, with the band of the tests."""
    names = list(dict.fromkeys(table.benchmark))
    figure, drawn = figures.panels(len(names), 4, (1.7, 1.5), 4.0, 0.3)
    for axes, name in zip(drawn, names, strict=True):
        of = table[table.benchmark == name]
        axes.fill_between(of.margin, of.least / of.outside, of.most / of.outside, color=figures.BLUE, alpha=0.25, lw=0)
        axes.plot(of.margin, of.measured / of.outside, color=figures.BLUE)
        axes.set(xlim=(0, 0.5), ylim=(0, 1.02))
        axes.set_title(f"{name} ({of.outside.iloc[0]} outside)", fontsize=7)
    figure.supxlabel("largest overlap with a member is above", fontsize=7)
    figure.supylabel("share of the candidates", fontsize=7)
    return figure


def balance(table: pd.DataFrame) -> str:
    rows = [
        (
            row.benchmark,
            str(row.members),
            f"{fixed(row.ce_std, 1)} ({fixed(row.ce_std_low, 1)} to {fixed(row.ce_std_high, 1)})",
            f"{fixed(row.ce_range, 0)} ({fixed(row.ce_range_low, 0)} to {fixed(row.ce_range_high, 0)})",
            with_error(row.r_std, row.r_std_se),
            with_error(row.mean_overlap, row.mean_overlap_se),
            f"{row.categories} of {row.of}",
            fixed(row.imbalance, 2),
        )
        for row in table.itertuples()
    ]
    of_ce = ("std of mean relative CE", "its range")
    columns = ("benchmark", "members", *of_ce, "std of mean R", "mean overlap", "categories", "imbalance")
    return frames.markdown(frames.of_rows(rows, columns))


def alike(table: pd.DataFrame) -> str:
    rows = [
        (
            row.group,
            str(row.pairs),
            _range(pd.Series([row.least, row.most]), 2),
            fixed(row.mean, 2),
            fixed(row.largest_se, 2),
        )
        for row in table.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("corruptions", "pairs", "overlap", "mean", "largest error")))


def transfers(table: pd.DataFrame) -> str:
    """Lists the candidates to which least is transferred."""
    rows = [
        (
            row.corruption,
            with_error(row.best, row.best_se),
            row.best_from,
            f"{fixed(row.overlap, 2)}, {row.overlap_with}",
            fixed(row.backward, 2) + (f" ({row.backward_flag})" if row.backward_flag else ""),
        )
        for row in table.sort_values("best").head(LEAST_TRANSFERS).itertuples()
    ]
    columns = ("corruption", "best transfer to it", "from", "largest overlap, with", "transfer back")
    return frames.markdown(frames.of_rows(rows, columns))


def severities(table: pd.DataFrame) -> str:
    rows = [
        (*(str(value) for value in row[:6]), _range(pd.Series(row[6:8]), 2)) for row in table.itertuples(index=False)
    ]
    columns = ("candidates of", "ranges", "both", "mild end", "severe end", "one level", "R at the ends")
    return frames.markdown(frames.of_rows(rows, columns))


def crossed(table: pd.DataFrame) -> str:
    rows = [
        (
            str(row.chosen_on),
            str(row.size),
            f"{row.above} of {row.pairs}",
            fixed(row.mean_overlap, 3),
            f"{row.covered} of {row.outside}",
        )
        for row in table.itertuples()
    ]
    columns = (
        "chosen on seed",
        "members",
        "pairs above .1 on the other",
        "mean overlap there",
        "covered above .3 there",
    )
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


def fill(page: str, tables: Mapping[str, str], numbers: Mapping[str, pd.DataFrame] = {}) -> str:
    """Puts Markdown tables between the lines `<!-- table NAME -->` and `<!-- end -->` of a page, and numbers of frames
    between `<!-- value FRAME:ROW:COLUMN:FORMAT -->` and `<!-- end -->` (see `value`).

    Raises:
      ValueError: the page asks for a table or a number that the study does not have; names it and those there are.
    """

    def put(match):
        if match[1] not in tables:
            raise ValueError(f"expected one of the tables {', '.join(tables)} in the page, found {match[1]!r}")
        return f"<!-- table {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    page = re.sub(r"<!-- table (\w+) -->.*?<!-- end -->", put, page, flags=re.S)
    return re.sub(
        r"<!-- value (.+?) -->.*?<!-- end -->",
        lambda of: f"<!-- value {of[1]} -->{value(of[1], numbers)}<!-- end -->",
        page,
    )


def value(address: str, numbers: Mapping[str, pd.DataFrame]) -> str:
    """Writes a number of a frame, named by `FRAME:ROW:COLUMN:FORMAT`.

    ROW are the values of the first columns of one row, with commas between them; FORMAT is `d`, `s` for text, `%`, or the
    number of decimals after a point, `.2`, with a sign where + is before it.

    Raises ValueError for a frame, row, column or format that is none, or several rows.
    """
    try:
        name, row, column, form = address.split(":")
        frame, keys = numbers[name], row.split(",")
        left = frame.iloc[:, : len(keys)].astype(str)
        [found] = frame.loc[(left == keys).all(axis=1), column]
        if form in ("d", "s"):
            return f"{found:{form}}"
        return frames.percent(found) if form == "%" else bare(fixed(found, int(form[-1]), sign=form[0] == "+"))
    except (KeyError, ValueError, IndexError) as error:
        raise ValueError(
            f"expected FRAME:ROW:COLUMN:FORMAT with one row of one of the frames {', '.join(numbers)}, found {address!r}"
        ) from error
