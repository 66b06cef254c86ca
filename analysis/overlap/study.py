"""An overlap study, computed from the answers of its models: its numbers, tables and pictures.

counts.csv, scores.csv                 correct answers; accuracy, error and R with standard errors
overlap.csv, overlap_long.csv, .png    the matrix, its pairs with standard errors, the picture
benchmark.json, stability.json         what Algorithm 1 selects, and how often resampled test images select it
mixtures.csv                           gains of models trained on whole benchmarks
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis import answers, figures, frames
from analysis.errors.scores import LEAST
from analysis.frames import CLEAN, RANDOM, STANDARD, Counted
from analysis.overlap import origins
from analysis.overlap.measured import MeasuredOverlap, matrix_frame, pairs_frame
from analysis.overlap.score import Overlap, overlap_matrix
from analysis.overlap.uncertainty import Errors, Repeats, held_noise, standard_errors
from analysis.references import BENCHMARKS, qualified_members
from analysis.selection import algorithm
from analysis.selection.algorithm import Stability
from analysis.selection.benchmark import coverage_text, measure_coverage, select_benchmark, stability_text
from corruptions.scoring.intervals import of_mean
from runtime import files, workdirs
from runtime.log import log

GAINS = ("raw_ce", "raw_gain", "raw_gain_se", "relative_ce", "relative_gain", "relative_gain_se")
_LISTED_SETS = 20  # number of most frequent sets in stability.json


@dataclasses.dataclass(frozen=True, eq=False)
class Study:
    """Overlaps of a study."""

    overlap: Overlap  # of n corruptions
    errors: Errors  # standard errors, and the overlap in each resample of the test images
    seeds: tuple[int, ...]  # seeds of the complete trainings

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        bits: np.ndarray,
        seeds: Sequence[int],
        num_classes: int | None = None,
        repeats: Repeats | None = None,
    ) -> "Study":
        """Computes a study of n corruptions from correctness [S, 1 + n, 1 + n, N].

        Its axes are seed, model (standard first), condition (clean first) and image. `seeds` are those of training, S;
        `num_classes` flags a standard model near chance; None does not look. `repeats` are further trainings, which tell
        the noise of training where S = 1.
        """
        accuracy, number = bits.mean(axis=-1), bits.shape[-1]
        overlap = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
        errors = standard_errors(bits, repeats=repeats)
        undefined = np.isnan(overlap.unclipped)  # by the accuracies, if not in every resample
        return cls(
            overlap, dataclasses.replace(errors, overlap=np.where(undefined, np.nan, errors.overlap)), tuple(seeds)
        )

    @property
    def measured(self) -> MeasuredOverlap:
        """Gives the overlaps with their standard errors."""
        names, overlap, unclipped, flags = (
            getattr(self.overlap, name) for name in ("names", "overlap", "unclipped", "flags")
        )
        weak = tuple(name for name, flag in zip(names, flags, strict=True) if flag == "weak")
        return MeasuredOverlap(names, overlap, unclipped, self.errors.overlap, weak=weak)


def read_study(workdir: pathlib.Path) -> Study:
    """Computes the study of a workdir of overlap.py from its answers: of the corruptions and the seeds of its settings.

    Raises FileNotFoundError or ValueError for no such workdir, or answers that are missing or damaged.
    """
    found = answers.read(workdir)
    names = corruptions_of(workdir, found)
    bits, seeds, other = answers_of(workdir, found, names)
    if other:
        log.warning("%s.", other)
    return Study.of(names, bits, seeds, found.conditions["classes"] or None)


def answers_of(
    workdir: pathlib.Path, found: answers.Answers, names: Sequence[str]
) -> tuple[np.ndarray, tuple[int, ...], str]:
    """Arranges the answers of a study and compares their origins: (bits, seeds) as of `Answers.study`, and the sentence of
    `origins.other_code`. Raises ValueError as these do, and where the answers are of several origins.
    """
    config, wanted = workdirs.read_config(workdir), [(CLEAN, 0), *((name, RANDOM) for name in names)]
    bits, seeds = found.study(names, seeds_of(workdir))
    records = found.records(wanted)
    origins.refuse_mixed(workdir, records, config.get("train", {}).get("corruption_options", {}))
    return bits, seeds, origins.other_code(workdir, records)


def seeds_of(workdir: pathlib.Path) -> tuple[int, ...]:
    """Lists the seeds that the settings of a workdir name; the workdir may hold answers of others."""
    return tuple(workdirs.read_config(workdir).get("study", {}).get("seeds", ()))


def corruptions_of(workdir: pathlib.Path, found: answers.Answers) -> tuple[str, ...]:
    """Lists the corruptions of a study: those that its settings name, or else those that a model was trained with.

    Raises FileNotFoundError or ValueError for no workdir of overlap.py.
    """
    config = workdirs.read_config(workdir) if (pathlib.Path(workdir) / "config.json").exists() else {}
    chosen = config.get("study", {}).get("corruptions", ())
    names = _names(chosen, _trained_with(found))
    if len(names) < 2:
        raise ValueError(f"expected a workdir of overlap.py, found {workdir} without corruptions of a study")
    return names


def _names(chosen, trained):
    """The corruptions that the settings name, expanded; where they name none, those that models were trained with."""
    members = [name for asked in chosen for name in (qualified_members(asked) if asked in BENCHMARKS else (asked,))]
    if set(members) <= set(trained):
        return tuple(dict.fromkeys(members)) or trained
    from corruptions.scoring.conditions import expand  # imports JAX, which takes seconds

    return expand(chosen)


def _trained_with(found):
    models = dict.fromkeys(model for (model, _), _ in found.counts)
    shown = {count.corruption for _, count in found.at_all_levels().counts if count.severity == RANDOM}
    return tuple(model for model in models if model in shown)


def counts_of(found: answers.Answers, names: Sequence[str], seeds: Sequence[int]) -> list[Counted]:
    """Lists the correct answers of a study: clean images, then the corruptions in the order of `names`."""
    place = {(CLEAN, 0): 0} | {(name, RANDOM): number for number, name in enumerate(names, 1)}
    kept = ((key, count) for key, count in found.counts if count[:2] in place and key[1] in seeds)
    return sorted(kept, key=lambda row: place[row[1][:2]])


def write_results(
    path: pathlib.Path,
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    dataset: str,
    num_classes: int,
    threshold: float,
    origin: str,
) -> tuple[Overlap, list[Counted]]:
    """Writes every table and figure of a study, and prints them.

    `path` is the workdir, with the answers of `standard` and of a model trained with each of `names` to clean images
    and to each of `names` at random severities, for all `seeds`. `dataset` and `num_classes` are of titles;
    `threshold` is the largest overlap between two members of the selected benchmark; `origin` says where the tables
    come from, for provenance.json and above the picture. Returns (the overlap, the rows of counts.csv); raises
    ValueError where a model or corruption is missing.
    """
    found = answers.read(path).at_all_levels()
    counts = counts_of(found, names, seeds)
    frames.write(path / "counts.csv", frames.of_counts(counts), origin)
    frames.write(path / "scores.csv", frames.scores(counts), origin)
    study = Study.of(names, *found.study(names, seeds), num_classes)
    write_matrix(path, study, f"Overlap of {len(names)} corruptions on {dataset}", origin)
    print(f"\n{overlap_text(study.overlap, study.errors.overlap)}\n")
    write_selection(path, study, threshold)
    return study.overlap, counts


def write_matrix(
    path: pathlib.Path, study: Study, title: str, origin: str, formats: Sequence[str] = figures.FORMATS
) -> None:
    """Writes overlap.csv, overlap_long.csv and the picture; `origin` as in `write_results`."""
    overlap, errors = study.overlap, study.errors
    frames.write(path / "overlap.csv", matrix_frame(overlap.names, overlap.overlap), origin)
    frames.write(path / "overlap_long.csv", pairs_frame(overlap, errors.overlap, errors.held), origin)
    heatmap = figures.heatmap(
        overlap.overlap,
        overlap.names,
        flags=overlap.flags,
        se=errors.overlap,
        title=title,
        provenance=origin,
        notes=[f"standard errors: {errors.held}"],
        tree=True,
    )
    figures.save(heatmap, path / "overlap", formats)


def write_selection(path: pathlib.Path, study: Study, threshold: float) -> tuple[tuple[str, ...], Stability] | None:
    """Writes and prints benchmark.json and stability.json, and returns (members, stability); where no candidate can be
    selected, says so, and returns None.
    """
    names, samples = study.overlap.names, study.errors.unclipped_samples
    if algorithm.undefined(study.overlap.overlap).all():
        for name in ("benchmark.json", "stability.json"):  # left by an earlier run
            files.remove(path / name)
        log.warning(
            "No benchmark is selected: no overlap is defined, because no model gains on the corruption it was trained with "
            "(see the flags). Train longer, or on more images."
        )
        return None
    members = tuple(select_benchmark(study.measured, path / "benchmark.json", threshold, sweep=True)["members"])
    stability = algorithm.stability(np.maximum(samples, 0), names, threshold, unclipped=samples)
    content = dataclasses.asdict(stability) | {"sets": stability.sets[:_LISTED_SETS]}
    if not stability.bound:
        del content["bound"]
    workdirs.write_json(path / "stability.json", content)
    weak = study.measured.weak
    print(f"\n{stability_text(stability, names, members, weak)}")
    if 0 < len(members) < len(names):
        covered = measure_coverage(study.overlap.unclipped, names, members, samples=samples, weak=weak)
        print(f"\n{coverage_text(covered, members, weak)}")
    return members, stability


def write_mixtures(path: pathlib.Path, members: Mapping[str, Sequence[str]], seeds: Sequence[int], origin: str) -> None:
    """Writes mixtures.csv, the gains of models trained on whole benchmarks on each corruption, and prints it.

    The workdir has the answers of `standard` and of the mixtures, {mixture: names of its corruptions}, to clean images
    and to all corruptions of the mixtures at random severities; trainings with several seeds are averaged. `origin`
    says where the table comes from, for provenance.json.
    """
    read, names = answers.read(path), dict.fromkeys(name for of in members.values() for name in of)

    def correct(model):
        """{corruption: fraction of the seeds that answer each image correctly [N]}."""
        conditions = {CLEAN: 0} | dict.fromkeys(names, RANDOM)
        return {c: np.mean([read.correct((model, s, c, at)) for s in seeds], axis=0) for c, at in conditions.items()}

    standard = correct(STANDARD)
    found = {name: mixture_gains(standard, correct(name)) for name in members}
    rows = [
        (mixture, row.Index, int(row.Index in members[mixture]), *row[1:])
        for mixture, gains in found.items()
        for row in gains.drop("mean").itertuples()
    ]
    columns = ("mixture", "corruption", "member", *GAINS)
    frames.write(path / "mixtures.csv", frames.of_rows(rows, columns), origin)
    for mixture, gains in found.items():
        print(f"\n{mixture}: relative CE, gain over the standard model (which has 100)")
        for name, row in gains.iterrows():
            inside = "in the mixture" if name in members[mixture] else ""
            numbers = f"{row.relative_ce:6.1f}  {row.relative_gain:6.1f} +- {row.relative_gain_se:.1f}"
            print(f"  {name:34s} {numbers}   {inside}".rstrip())


def mixture_gains(
    standard: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray], reference: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Computes the gains of a model over the standard one on each corruption.

    With the wrong answers w[i] of image i under a corruption and w0[i] on the clean image, and the errors E and E0 of
    a reference network:

        raw CE      = mean_i  100 w[i] / E
        relative CE = mean_i  100 (w[i] - w0[i]) / (E - E0)
        gain        = CE of the standard model - CE of the model, positive if the model is better

    Both models answer the same images under the same draws. So a gain is a mean over images of a difference, and its
    standard error assumes no independence. Where the reference is the standard model, E and E0 come from these images,
    too: the standard error is then that of the ratio, to first order, from the deviation over images of
    (CE / 100 * v_standard - v) for v = w or w - w0. A gain on a corruption that the model was not trained with says that
    its training covers the corruption. Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of
    Robustness Benchmarks by Using Non-Overlapping Corruptions", Table 1 (m_IC and m_INOC).

    Args:
      standard, model: `clean` and corruptions -> [N], 1 for a correct answer, or the fraction of several trainings.
      reference: `clean` and corruptions -> error in [0, 1]; None is the standard model, whose own CE is 100 then.

    Returns:
      The columns `GAINS`, a row for each corruption under which the reference loses `LEAST` points or more, and for
      their `mean`, NaN where there is none.
    """
    errors = reference or {name: 1 - float(np.mean(bits)) for name, bits in standard.items()}
    names = [name for name in standard if name != CLEAN and 100 * (errors[name] - errors[CLEAN]) >= LEAST]
    if not names:
        return pd.DataFrame(np.nan, index=["mean"], columns=list(GAINS))
    divisors = np.array([errors[name] for name in names])[:, None]
    clean = np.array([1 - np.asarray(bits[CLEAN], float) for bits in (standard, model)])[:, None]
    wrong = np.array([[1 - np.asarray(bits[name], float) for name in names] for bits in (standard, model)])
    columns = []
    for divided, divisor in ((wrong, divisors), (wrong - clean, divisors - errors[CLEAN])):
        values = 100 * divided / divisor
        of_standard = values[0] if reference else values[0] * values[1].mean(axis=-1, keepdims=True) / 100
        spread = of_standard - values[1]
        values, spread = (np.concatenate([v, v.mean(axis=-2, keepdims=True)], axis=-2) for v in (values, spread))
        ce, gain = values[1].mean(axis=-1), (values[0] - values[1]).mean(axis=-1)
        most = [*(100 / of[0] for of in divisor), float(np.mean(100 / divisor))]
        columns += [ce, gain, [of_mean(of, scale, paired=True) for of, scale in zip(spread, most, strict=True)]]
    return pd.DataFrame(dict(zip(GAINS, columns, strict=True)), index=[*names, "mean"])


def overlap_text(overlap: Overlap, se: np.ndarray) -> str:
    """Lists the accuracies behind an overlap matrix, then the matrix with its median standard error, then the warnings;
    se is [n, n].
    """
    names, width = overlap.names, max(map(len, overlap.names))
    models = [
        f"{name:{width}}  {overlap.clean_accuracy[k + 1]:10.3f}  {overlap.robustness[0, k]:7.3f} "
        f"{overlap.robustness[k + 1, k]:6.3f}  {overlap.gain[k]:6.3f}   {overlap.flags[k]}"
        for k, name in enumerate(names)
    ]
    rows = []
    for i, name in enumerate(names):
        cells = ("   -" if i == j else f"{value:4.2f}" for j, value in enumerate(overlap.overlap[i]))
        rows.append(f"{name:{width}} {' '.join(cells)}  {i}")
    pairs = se[~np.eye(len(names), dtype=bool) & np.isfinite(overlap.overlap)]
    median = f"{np.nanmedian(pairs):.3f}" if np.isfinite(pairs).any() else "undefined"
    matrix = [
        f"overlap (median standard error {median}, of {held_noise(overlap.seeds)}):",
        f"{'':{width}} {' '.join(f'{k:4d}' for k in range(len(names)))}",
        *rows,
    ]
    return "\n".join(
        [
            f"{'':{width}}  clean acc.   R std.  R own    gain   flag",
            f"{STANDARD:{width}}  {overlap.clean_accuracy[0]:10.3f}",
            *models,
            "",
            *(matrix if len(pairs) else ["overlap: undefined, for no pair of corruptions has a gain on both"]),
            *(f"warning: {sentence}" for sentence in overlap.warnings),
        ]
    )
