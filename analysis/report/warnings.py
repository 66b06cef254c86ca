"""Sentences on the limits of a study's numbers."""

import itertools
from collections.abc import Sequence

import numpy as np

from analysis.report.inputs import Study
from analysis.rounding import with_error

RARE = 0.5
"""Members selected in a smaller share of the resamples are called unstable."""


def warnings(study: Study) -> list[tuple[bool, str]]:
    """Lists (serious, sentence), serious ones first."""
    sentences = [(True, sentence) for sentence in study.overlap.warnings]
    sentences += _near_threshold(study) + _selection(study) + _revisions(study) + _errors(study)
    return sorted(sentences, key=lambda sentence: not sentence[0])


def near_threshold(study: Study, names: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """Lists (first, second, unclipped overlap, standard error) of the pairs, without a weak gain, that lie within two
    standard errors of the threshold.
    """
    index = sorted(study.names.index(name) for name in names if not study.weak((name,)))
    values, se = study.overlap.unclipped, study.errors.overlap
    return [
        (study.names[i], study.names[j], values[i, j], se[i, j])
        for i, j in itertools.combinations(index, 2)
        if abs(values[i, j] - study.threshold) <= 2 * se[i, j]
    ]


def _near_threshold(study):
    if study.selection is None:
        return []
    threshold, number = f"{study.threshold:g}", len(study.names)
    result = [
        (True, f"{first} and {second}, both members, may overlap more than {threshold}: {with_error(*value)} unclipped")
        for first, second, *value in near_threshold(study, study.selection.members)
    ]
    if every := near_threshold(study, study.names):
        note = (
            f"{len(every)} of {number * (number - 1) // 2} pairs lie within two standard errors of the threshold "
            f"{threshold}: chance decides which of their corruptions are selected (see the resampled selections)"
        )
        result.append((False, note))
    return result


def _selection(study):
    selection, result = study.selection, []
    if selection is None:
        return result
    asked = study.config.get("study", {}).get("threshold")
    if asked is not None and asked != study.threshold:
        result.append((False, f"the benchmark was selected at {study.threshold:g}, the study's threshold is {asked:g}"))
    if selection.ties:
        note = "other sets have the same size and mean overlap; the overlap before it is clipped at 0 chose among them"
        result.append((False, f"{len(selection.ties)} {note}"))
    if not selection.exact:
        result.append(
            (True, "the search for the benchmark gave up before proving that its mean overlap is the smallest")
        )
    if weak := study.weak(selection.members):
        result.append((True, f"selected although a weak gain leaves their overlaps unknown: {', '.join(weak)}"))
    if selection.dropped:
        result.append((True, f"left out of the selection, without a defined overlap: {', '.join(selection.dropped)}"))
    if rare := [name for name in selection.members if study.stability.members[name] < RARE]:
        result.append((True, f"selected in fewer than half of the resamples, although members: {', '.join(rare)}"))
    return result


def _revisions(study):
    revision, result = str(study.provenance.get("git_revision", "unknown")), []
    if revision.endswith("+changes"):
        plain = revision.removesuffix("+changes")[:12]
        result.append((True, f"the code differed from its revision {plain} (uncommitted changes)"))
    runs = [study.provenance, *study.provenance.get("continued", [])]
    if later := {str(run.get("git_revision", "unknown")) for run in runs} - {revision}:
        listed = ", ".join(sorted(map(_short, later)))
        result.append((True, f"the study was continued by other revisions than {revision[:12]}: {listed}"))
    devices = {str(run.get("device")) for run in runs} | {device for _, _, device in study.models}
    if len(devices) > 1:
        result.append((False, f"more than one device computed the results: {', '.join(sorted(devices))}"))
    if others := [trained_by for _, trained_by, _ in study.models if trained_by != revision]:
        counted = f"{len(others)} of {len(study.models)} models were trained by another revision than {revision[:12]}"
        result.append((True, f"{counted}: {', '.join(sorted(map(_short, set(others))))}"))
    return result


def _short(revision):
    return revision[:12] + ("+changes" if revision.endswith("+changes") else "")


def _errors(study):
    result = [(False, sentence) for sentence in study.omitted.values()]
    if len(study.whole.seeds) == 1:
        result.append((False, "one seed: standard errors are of the test images only and hold no training noise"))
    above = int(np.sum(np.triu(np.nan_to_num(study.clear.overlap.overlap), 1) > 1)) if study.clear else 0
    if above:
        result.append(
            (False, f"overlaps above 1 between corruptions with a clear gain (noise, or real synergy): {above}")
        )
    return result
