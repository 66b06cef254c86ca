"""Tables about benchmarks: what each covers, how balanced it is, which corruptions are alike, what a selection is worth.

Overlaps, transfers and gains are of `analysis.overlap.score`. Intervals and errors come from the resamples of the study, which
weight the test images anew and draw the noise of trainings (`analysis.overlap.uncertainty`).
"""

import itertools
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

import corruptions
from analysis import frames
from analysis.overlap import study as overlap_study
from analysis.overlap.score import balance, compute
from analysis.selection import algorithm
from analysis.selection.benchmark import COVERED, NOT_COVERED, NOT_SHOWN, UNDEFINED, measure_coverage
from analysis.selection.nk_benchmarks import categories, representation, spread
from runtime.files import read_json

LEVEL = 0.05
SELECTED, ANY = "selected", "any other candidate"
BENCHMARKS = ("imagenet_c", "imagenet_noc", "noc_candidates", "laion_c", "optics", "camera")
"""`camera` is no registered benchmark: this study takes all its candidates of that package."""
MARGINS = tuple(k / 50 for k in range(26))
BAR = 0.3
"""From this overlap on the paper on ImageNet-NOC says that a corruption covers another one."""
NOISES = tuple(f"imagenet_c/{name}_noise" for name in ("gaussian", "shot", "impulse"))
LENSES = tuple(f"optics/{name}" for name in ("astigmatism", "coma", "defocus_spherical", "trefoil"))
BLURS = tuple(f"imagenet_c/{name}" for name in ("defocus_blur", "motion_blur", "zoom_blur", "elastic_transform"))
ALIKE = {
    "ImageNet-C's fifteen": (corruptions.names("imagenet_c"),),
    "ImageNet-NOC's eight": (corruptions.names("imagenet_noc"),),
    "ImageNet-C's noises": (NOISES,),
    "defocus, motion and zoom blur, elastic_transform": (BLURS,),
    "fog and contrast": (("imagenet_c/fog", "imagenet_c/contrast"),),
    "geometric_shapes and stickers": (("laion_c/geometric_shapes", "laion_c/stickers"),),
    "these two with the noises": (("laion_c/geometric_shapes", "laion_c/stickers"), NOISES),
    "mosaic with glass_blur": (("laion_c/mosaic", "imagenet_c/glass_blur"),),
    "OpticsBench's lenses": (LENSES,),
    "the lenses with defocus_blur": (LENSES, BLURS[:1]),
    "iso_noise with the noises": (("camera/iso_noise",), NOISES),
    "color_quant with NOC's quantization": (("camera/color_quant", "noc/quantization"),),
    "dark with NOC's brightness": (("camera/dark", "noc/brightness"),),
}
"""Groups of corruptions that are alike: pairs within one set, or between two."""
_CENTRAL = (2.5, 97.5)


def members(benchmark: str, candidates: Sequence[str]) -> tuple[str, ...]:
    """Lists the candidates that belong to a benchmark; noc/salt_pepper and noc/pixelate are ImageNet-C's twins."""
    twins = ("imagenet_c/impulse_noise", "imagenet_c/pixelate") if benchmark == "noc_candidates" else ()
    if benchmark == "camera":
        return tuple(name for name in candidates if name.startswith("camera/"))
    own = (*corruptions.names(benchmark), *twins)
    return tuple(name for name in candidates if name in own)


def members_of_all(
    candidates: Sequence[str], trained: Sequence[str], selected: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Lists the members of each benchmark whose members all have a model, and of the selected one."""
    found = {benchmark: members(benchmark, candidates) for benchmark in BENCHMARKS}
    complete = {benchmark: names for benchmark, names in found.items() if names and set(names) <= set(trained)}
    return complete | {SELECTED: tuple(selected)}


def benchmarks_frame(
    measured: overlap_study.Study, benchmarks: Mapping[str, Sequence[str]], above: float = 0.0, below: float = 0.1
) -> pd.DataFrame:
    """Tests whether a member of each benchmark covers each other candidate (`analysis.selection.benchmark`).

    A candidate is covered if an overlap with a member is shown to be larger than `above`, else not covered if all are shown to
    be smaller than `below`. Tests are normal on the overlaps and their errors; `p` is corrected for the members (Bonferroni),
    `p_of_all` and `p_below_of_all` for all rows (Benjamini and Yekutieli), and the verdict follows from these. `transfer`
    is the T from that member to the candidate. The rows of `ANY` take all other candidates as members.
    """
    names, rows = measured.overlap.names, []
    asked = [(of, inside) for of, inside in benchmarks.items() if len(inside) < len(names)]
    for benchmark, inside in [*asked, *((ANY, [other for other in names if other != name]) for name in names)]:
        tests = (
            measure_coverage(measured.overlap.unclipped, names, inside, se=measured.errors.overlap, above=margin)
            for margin in (above, below)
        )
        covered, uncovered = tests
        rows += [
            (
                benchmark,
                name,
                *one[:3],
                _transfer(measured, one.member, name),
                one.members,
                one.p,
                uncovered[name].p_uncovered,
            )
            for name, one in covered.items()
            if one.verdict != UNDEFINED
        ]
    columns = ("benchmark", "corruption", "overlap", "with_member", "se", "transfer", "members", "p", "p_below")
    table = frames.of_rows(rows, columns)
    for name in ("p", "p_below"):
        table[f"{name}_of_all"] = stats.false_discovery_control(table[name], method="by")
    left = np.where(table.p_below_of_all <= LEVEL, NOT_COVERED, NOT_SHOWN)
    table["verdict"] = np.where(table.p_of_all <= LEVEL, COVERED, left)
    return table


def _transfer(measured, trained, tested):
    names = measured.overlap.names
    return measured.overlap.transfer[names.index(trained), names.index(tested)] if trained else np.nan


def uncovered_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Names the candidates of `benchmarks_frame` that each benchmark does not cover."""
    found = table[table.verdict == NOT_COVERED].groupby("benchmark", sort=False).corruption
    rows = [(name, len(of), " and ".join(one.split("/")[1] for one in of)) for name, of in found]
    return frames.of_rows(rows, ("benchmark", "number", "names"))


def coverage_frame(measured: overlap_study.Study, benchmarks: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Counts the candidates outside of each benchmark that a member covers, at each of `MARGINS`.

    measured    their largest overlap with a member is above the margin
    least       it is shown to be (`benchmarks_frame`); `most` is `outside` less those whose overlaps are shown to be below it
    """
    rows = []
    for margin in MARGINS:
        table = benchmarks_frame(measured, benchmarks, margin, margin)
        for benchmark, of in table.groupby("benchmark", sort=False):
            shown, below = (of.verdict == COVERED).sum(), (of.verdict == NOT_COVERED).sum()
            rows.append((benchmark, margin, len(of), (of.overlap > margin).sum(), shown, len(of) - below))
    table = frames.of_rows(rows, ("benchmark", "margin", "outside", "measured", "least", "most"))
    order = {name: place for place, name in enumerate((*benchmarks, ANY))}
    return table.sort_values(["benchmark", "margin"], key=lambda of: of.map(order) if of.name == "benchmark" else of)


def relative_ce(full: np.ndarray) -> np.ndarray:
    """Computes the relative CE in percent of each model under each corruption, the standard model is the reference.

        CE[m,c] = 100 (A[m,0] - A[m,c]) / (A[0,0] - A[0,c])

    from accuracies A [..., 1 + n, 1 + n], standard and clean first; [..., n, n]. Below 100 is more robust.
    """
    full = np.asarray(full, float)
    lost = full[..., :1] - full[..., 1:]
    return 100 * lost[..., 1:, :] / lost[..., :1, :]


def balance_frame(
    measured: overlap_study.Study, benchmarks: Mapping[str, Sequence[str]], of_seeds: Sequence[np.ndarray] = ()
) -> pd.DataFrame:
    """Measures the balance of each benchmark of two or more members.

    ce_std, ce_range    population standard deviation, and largest less smallest, of the mean `relative_ce` over the members, of
                    the models trained with one member each: does robustness to one member count as much as robustness to
                    another? (Laugros, Caplier, Ospici, "Increasing the Coverage and Balance ...", Table 2)
    r_std           the same deviation of mean R, which is not divided by what the standard model loses
    mean_overlap    mean overlap of two members
    categories      of `of` clusters of all candidates, those that have a member; `imbalance` is the spread of the number of
                    members over them (`analysis.selection.nk_benchmarks`)

    `low` and `high` are 95 % of the resamples of the study, `se` the deviation over them. `ce_std_0`, `ce_std_1` ... are
    of the accuracies of one seed each.
    """
    names, found = measured.overlap.names, measured.overlap
    # As measured, then in each resample.
    overlap = np.maximum(np.concatenate([found.unclipped[None], measured.errors.unclipped_samples]), 0)
    robustness = np.concatenate([found.robustness[None], compute(measured.errors.samples)[0]])
    accuracy = found.clean_accuracy[:, None] * np.concatenate([np.ones((1 + len(names), 1)), found.robustness], axis=1)
    ce = np.concatenate([relative_ce(accuracy)[None], relative_ce(measured.errors.samples)])
    ce_of_seeds = [relative_ce(one) for one in of_seeds]
    clusters = categories(overlap[0], names)
    rows = []
    for benchmark, inside in benchmarks.items():
        at = [names.index(name) for name in inside if name not in clusters.dropped]
        if len(at) < 2:
            continue
        block = np.ix_(at, at)
        of_ce = np.array([balance(of[block].mean(axis=1)) for of in ce])  # mean, std, sample std, range
        bands = np.percentile(of_ce[1:], _CENTRAL, axis=0)
        r_std = np.array([balance(of[1:][block].mean(axis=1)).std for of in robustness])
        first, second = zip(*itertools.combinations(at, 2))
        pairs = np.ma.masked_invalid(overlap[:, first, second]).mean(axis=1)
        counts = representation([[names[k] for k in at]], clusters.clusters)[0]
        spreads = (value for of in (1, 3) for value in (of_ce[0, of], *bands[:, of]))
        others = r_std[0], r_std[1:].std(), pairs[0], float(pairs[1:].std())
        represented = int(np.count_nonzero(counts)), len(clusters.clusters), float(spread(counts))
        seeds = (balance(of[block].mean(axis=1)).std for of in ce_of_seeds)
        rows.append((benchmark, len(at), *spreads, of_ce[0, 0], *others, *represented, *seeds))
    spreads = (f"ce_{of}{end}" for of in ("std", "range") for end in ("", "_low", "_high"))
    others = ("ce_mean", "r_std", "r_std_se", "mean_overlap", "mean_overlap_se", "categories", "of", "imbalance")
    seeds = (f"ce_std_{seed}" for seed in range(len(ce_of_seeds)))
    return frames.of_rows(rows, ("benchmark", "members", *spreads, *others, *seeds))


def alike_frame(measured: overlap_study.Study) -> pd.DataFrame:
    """Summarises the unclipped overlaps of each group of `ALIKE` whose corruptions all have one; `mean` is of the clipped ones."""
    names, found, rows = measured.overlap.names, measured.overlap.unclipped, []
    for group, sets in ALIKE.items():
        pairs = itertools.combinations(sets[0], 2) if len(sets) == 1 else itertools.product(*sets)
        if {name for of in sets for name in of} <= set(names):
            at = tuple(np.transpose([(names.index(first), names.index(second)) for first, second in pairs]))
            of = found[at].min(), found[at].max(), np.maximum(found[at], 0).mean(), measured.errors.overlap[at].max()
            rows.append((group, len(at[0]), *of))
    return frames.of_rows(rows, ("group", "pairs", "least", "most", "mean", "largest_se"))


def transfers_frame(measured: overlap_study.Study) -> pd.DataFrame:
    """Tabulates the best transfer to each candidate j: T from i to j is the gain on j from training with i, over that with j.

    `best` is the largest T to j, of the model trained with `best_from`: chosen as the largest, it is on average too large.
    `overlap` is the largest overlap of j, with the corruption `overlap_with`; `backward` is the T from j to that one, and
    `backward_flag` says whether it divides by a weak gain. `median_se` is the median error of the overlaps of j.
    """
    found, rows = measured.overlap, []
    off = np.where(np.eye(len(found.names), dtype=bool), -np.inf, 0)
    incoming, symmetric = (np.nan_to_num(of, nan=-np.inf) + off for of in (found.transfer, found.unclipped))
    for j, name in enumerate(found.names):
        best, with_ = int(incoming[:, j].argmax()), int(symmetric[j].argmax())
        of_best = found.transfer[best, j], measured.errors.transfer[best, j]
        of_overlap = found.unclipped[j, with_], found.transfer[j, with_], found.flags[with_]
        errors = np.nanmedian(np.delete(measured.errors.overlap[j], j))
        rows.append((name, *of_best, found.names[best], found.names[with_], *of_overlap, errors))
    columns = ("best", "best_se", "best_from", "overlap_with", "overlap", "backward", "backward_flag", "median_se")
    return frames.of_rows(rows, ("corruption", *columns))


def asymmetry_frame(measured: overlap_study.Study) -> pd.DataFrame:
    """Summarises |T from i to j - T from j to i| over all pairs: `median`, `ninety` (90 % are smaller), and `clear`, the share
    of pairs that differ by more than two errors, which are deviations over the resamples of the study.
    """
    directed = compute(measured.errors.samples)[2]
    pairs = np.triu_indices(len(measured.overlap.names), 1)
    errors = np.nanstd((directed - np.swapaxes(directed, 1, 2))[:, *pairs], axis=0)
    apart = np.abs(measured.overlap.transfer - measured.overlap.transfer.T)[pairs]
    apart, errors = apart[~np.isnan(apart)], errors[~np.isnan(apart)]
    row = "all", len(apart), *np.quantile(apart, (0.5, 0.9)), np.mean(apart > 2 * errors)
    return frames.of_rows([row], ("of", "pairs", "median", "ninety", "clear"))


def severities_frame(path: pathlib.Path, candidates: Sequence[str]) -> pd.DataFrame:
    """Counts for each package the ranges of a file of `tools.calibrate` whose ends have R .95 and .50, each within .02.

    `both`, `mild` (.95) and `severe` (.50) are numbers of ranges, `one_level` those of a single level, whose largest R is
    `one_level_most`; `least` and `most` are the smallest and the largest R at an end.
    """
    of_name, rows = read_json(path, kind=None)["corruptions"], []
    table = pd.DataFrame(
        [
            (name.split("/")[0], *of_name[name]["robustness"], len(set(of_name[name]["range"])) == 1)
            for name in candidates
        ],
        columns=["package", "mild", "severe", "one_level"],
    )
    everything = table.assign(package="all")
    for package, of in pd.concat([table, everything]).groupby("package", sort=False):
        mild, severe = (of.mild - 0.95).abs() <= 0.02, (of.severe - 0.5).abs() <= 0.02
        ends = of[["mild", "severe"]].to_numpy()
        counts = (mild & severe).sum(), mild.sum(), severe.sum(), of.one_level.sum()
        rows.append((package, len(of), *counts, ends.min(), ends.max(), of.mild[of.one_level].max()))
    return frames.of_rows(
        rows, ("package", "ranges", "both", "mild", "severe", "one_level", "least", "most", "one_level_most")
    )


def crossed_frame(names: Sequence[str], of_seeds: Mapping[int, np.ndarray], threshold: float) -> pd.DataFrame:
    """Selects a benchmark by Algorithm 1 from the accuracies of one seed, and measures it by those of each other seed.

    `above` of its `pairs` have a larger overlap than the threshold there, `mean_overlap` is the mean; `covered` of `outside`
    have a larger overlap than `BAR` with a member.
    """
    free = {seed: compute(one)[-1] for seed, one in of_seeds.items()}
    rows = []
    for chosen, other in itertools.permutations(free, 2):
        inside = algorithm.select(np.maximum(free[chosen], 0), names, threshold, unclipped=free[chosen]).members
        at = [names.index(name) for name in inside]
        pairs = np.maximum(free[other], 0)[np.ix_(at, at)][np.triu_indices(len(at), 1)]
        largest = np.delete(free[other], at, axis=0)[:, at].max(axis=1)
        counts = len(pairs), (pairs > threshold).sum(), pairs.mean(), (largest > BAR).sum(), len(largest)
        rows.append((chosen, other, len(at), *counts, ", ".join(inside)))
    columns = ("size", "pairs", "above", "mean_overlap", "covered", "outside", "members")
    return frames.of_rows(rows, ("chosen_on", "measured_on", *columns))


def stability_frame(found: algorithm.Stability, selected: Sequence[str], sets: int) -> pd.DataFrame:
    """Tabulates how often resamples select: a row for each size, and for all, where `share` is that of the selected set; `sets`
    are those of its size that obey the rule.
    """
    won = dict(found.sets).get(tuple(selected), 0.0)
    rows = [(str(size), share, np.nan) for size, share in sorted(found.sizes.items())]
    return frames.of_rows([*rows, ("selected", won, sets)], ("size", "share", "sets"))
