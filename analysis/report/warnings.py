"""What a reader of a report should know before using its numbers."""

import itertools
from collections.abc import Sequence

import numpy as np

from analysis.report.inputs import Study
from analysis.rounding import with_error

RARE = 0.5  # members selected in fewer resamples are called unstable


def warnings(study: Study) -> list[tuple[bool, str]]:
    """Lists (serious, sentence), serious ones first."""
    sentences = [(True, sentence) for sentence in study.overlap.warnings]
    sentences += _near_threshold(study) + _selection(study) + _revisions(study) + _errors(study)
    return sorted(sentences, key=lambda sentence: not sentence[0])


def near_threshold(study: Study, threshold: float, names: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """[(first, second, unclipped overlap, standard error)] of the pairs within two standard errors
    of the threshold.
    """
    index = [study.names.index(name) for name in names]
    values, se = study.overlap.unclipped, study.errors.overlap
    return [
        (study.names[i], study.names[j], values[i, j], se[i, j])
        for i, j in itertools.combinations(sorted(index), 2)
        if abs(values[i, j] - threshold) <= 2 * se[i, j]
    ]


def _near_threshold(study):
    if study.benchmark is None:
        return []
    threshold = study.benchmark["threshold"]
    members = near_threshold(study, threshold, study.benchmark["members"])
    every, number = near_threshold(study, threshold, study.names), len(study.names)
    result = [
        (
            True,
            f"{first} and {second}, both members, may overlap more than {threshold:g}: {with_error(value, se)} unclipped",
        )
        for first, second, value, se in members
    ]
    if every:
        pairs = number * (number - 1) // 2
        result.append(
            (
                False,
                f"{len(every)} of {pairs} pairs lie within two standard errors of the threshold {threshold:g}: which "
                "corruptions are selected depends on chance there (see the resampled selections)",
            )
        )
    return result


def _selection(study):
    benchmark, result = study.benchmark, []
    if benchmark is None:
        return result
    asked = study.config.get("study", {}).get("threshold")
    if asked is not None and asked != benchmark["threshold"]:
        result.append(
            (False, f"the benchmark was selected at {benchmark['threshold']:g}, the study's threshold is {asked:g}")
        )
    if benchmark.get("number_of_ties"):
        result.append(
            (
                False,
                f"{benchmark['number_of_ties']} other sets have the same size and mean overlap; the choice among them went "
                "by the overlap before it is clipped at 0",
            )
        )
    if benchmark.get("winner_is_exact") is False:
        result.append(
            (True, "the search for the benchmark gave up before proving that its mean overlap is the smallest")
        )
    if benchmark.get("dropped"):
        result.append(
            (True, f"left out of the selection, without a defined overlap: {', '.join(benchmark['dropped'])}")
        )
    shares = (study.stability or {}).get("members", {})
    rare = [name for name in benchmark["members"] if shares.get(name, 1) < RARE]
    if rare:
        result.append((True, f"selected in fewer than half of the resamples, although members: {', '.join(rare)}"))
    return result


def _revisions(study):
    revision, result = str(study.provenance.get("git_revision", "unknown")), []
    if revision.endswith("+changes"):
        result.append(
            (
                True,
                f"the code differed from its revision {revision.removesuffix('+changes')[:12]} (uncommitted changes)",
            )
        )
    later = {str(run.get("git_revision", "unknown")) for run in study.provenance.get("continued", [])} - {revision}
    if later:
        result.append(
            (
                True,
                f"the study was continued by other revisions than {revision[:12]}: {', '.join(sorted(map(_short, later)))}",
            )
        )
    devices = {str(run.get("device")) for run in (study.provenance, *study.provenance.get("continued", []))}
    devices |= {device for _, _, device in study.models}
    if len(devices) > 1:
        result.append((False, f"more than one device computed the results: {', '.join(sorted(devices))}"))
    recorded = (revision, *later)
    tables = [f"{n} ({r})" for n, r in study.revisions.items() if not any(_same(known, r) for known in recorded)]
    if tables:
        result.append((True, f"provenance.json names revision {revision[:12]}, but others wrote {', '.join(tables)}"))
    others = [trained_by for _, trained_by, _ in study.models if trained_by != revision]
    if others:
        texts = ", ".join(sorted(map(_short, set(others))))
        result.append(
            (
                True,
                f"{len(others)} of {len(study.models)} models were trained by another revision than {revision[:12]}: {texts}",
            )
        )
    return result


def _short(revision):
    return revision[:12] + ("+changes" if revision.endswith("+changes") else "")


def _same(revision, short):
    return revision == "unknown" or revision.startswith(short) or short.startswith(revision)


def _errors(study):
    result = []
    if len(study.seeds) == 1:
        result.append((False, "one seed: standard errors do not hold what differs from one training to the next"))
    above = int(np.sum(np.triu(np.nan_to_num(study.overlap.overlap), 1) > 1))
    if above:
        result.append((False, f"overlaps above 1, which weak gains bring about, or real synergy: {above}"))
    return result
