"""The inputs of a report: the answers of a workdir of overlap.py, and everything that follows from them.

Tables are never read. benchmark.json, coverage.json, comparison.json and evaluation.json say what a user chose (a
threshold, a benchmark, another study, a reference); the numbers are computed again from the answers.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis import answers, trained
from analysis.calibration import CALIBRATED
from analysis.distances.results import Distance, measured_in, read_distances
from analysis.errors import reference
from analysis.errors.reference import REFUSE
from analysis.errors.scores import ImageErrors
from analysis.errors.summary import Summary, score
from analysis.frames import CLEAN, RANDOM, STANDARD
from analysis.overlap import agreement, study
from analysis.overlap.score import Overlap
from analysis.overlap.uncertainty import Errors
from analysis.selection import algorithm, nk_benchmarks, select
from analysis.selection.algorithm import Selection, Stability
from analysis.selection.benchmark import Coverage, measure_coverage
from corruptions.files import digest_of_file
from runtime.artifacts import read_record
from runtime.command import refuse_imports
from runtime.files import NULL, DamagedFileError, Either, Maybe, mismatch, read_json
from runtime.workdirs import read_config

REQUIRED = ("config.json", "provenance.json")
_NUMBER, _PAIR, _RUN = Either(float, NULL), (float, float), {"git_revision": Maybe(str), "device": Maybe(str)}
CONFIG = {
    "dataset": Maybe({"image_size": Maybe(int)}),
    "model": Maybe({}),
    "train": Maybe(
        {
            "milestones": Maybe([float]),
            "corruption_options": Maybe({str: {"range": Maybe(Either(_PAIR, NULL))}}),
        }
    ),
    "study": Maybe({"threshold": Maybe(float), "mixtures": Maybe([str])}),
}
SHAPES = {  # file -> shape of its content
    "provenance.json": {
        **_RUN,
        "versions": Maybe({str: str}),
        "continued": Maybe([_RUN]),
        "files": Maybe({str: {}}),
    },
    "benchmark.json": {"threshold": float, "strict": bool, "written": Maybe(str)},
    "coverage.json": {"benchmark": [str]},
    "comparison.json": {
        "first": str,
        "threshold": float,
        "workdirs": Maybe((str, str)),
        "training_seconds": Either(_PAIR, NULL),
    },
    "evaluation.json": {"eval": Maybe({"reference": Maybe(str), "reference_mismatch": Maybe(str)})},
    "ranges.json": {"corruptions": {str: Either(CALIBRATED, {"range": _PAIR})}},
    "timing.json": {"training_seconds": {str: float}},
    "section.json": {
        "title": str,
        "facts": [str],
        "header": [str],
        "rows": [[str]],
        "figures": [str],
        "made_from": Maybe({str: str}),
    },
}
_FILES = (*REQUIRED, *SHAPES, "answers/*.npz", "msd/schemes/*.npz", "*/section.json")


class Study(NamedTuple):
    """Everything that a report shows."""

    workdir: pathlib.Path
    config: dict  # as stored, like the provenance
    provenance: dict
    labels: tuple[str, ...]  # names of the corruptions, as short as they stay distinct
    whole: study.Study  # the study of all corruptions
    # The study of the corruptions without a flag; None of fewer than two. Means over pairs come from it.
    clear: study.Study | None
    other_code: str  # as of `analysis.overlap.origins`
    threshold: float  # largest overlap between two members
    chosen_at: str  # time of that choice, or ""
    # Benchmark at the threshold, and its share of resamples; None where no overlap is defined.
    selection: Selection | None
    stability: Stability | None
    # covering, coverage: members of a benchmark, and how it covers the others.
    covering: tuple[str, ...]
    coverage: Mapping[str, Coverage]
    categories: tuple[tuple[str, ...], ...]  # clusters of corruptions, or ()
    mixtures: Mapping[str, tuple[pd.DataFrame, tuple[str, ...]]]  # {mixture: (`study.mixture_gains`, its corruptions)}
    summaries: Sequence[Summary]  # errors of models on benchmarks
    # (name of another study, agreement of the matrices, of the benchmarks, seconds of training), or None.
    compared: tuple[str, agreement.Agreement, agreement.BenchmarkAgreement, list[float] | None] | None
    ranges: dict | None  # content of ranges.json, and of timing.json
    timing: dict | None
    distances: Sequence[Distance]  # of schemes, measured in a present model of the workdir
    # (content of FOLDER/section.json, {name: PNG beside it}) of every project that left one.
    sections: tuple[tuple[dict, dict[str, bytes]], ...]
    omitted: Mapping[str, str]  # {result: why it is not shown, and the command that mends it}
    files: tuple[tuple[str, int, str], ...]  # (name, bytes, SHA-256) of every file that was read
    # (model/seed, revision, device) from the provenance of each trained model.
    models: tuple[tuple[str, str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Lists the corruptions."""
        return self.whole.overlap.names

    @property
    def overlap(self) -> Overlap:
        """Gives the overlaps of all corruptions."""
        return self.whole.overlap

    @property
    def errors(self) -> Errors:
        """Gives the standard errors of all corruptions."""
        return self.whole.errors

    def weak(self, names: Sequence[str]) -> list[str]:
        """Lists the corruptions with a weak gain among some."""
        return [name for name in names if self.overlap.flags[self.names.index(name)] == "weak"]

    def is_weak(self, selection: Selection) -> bool:
        """Tells whether the overlaps of a selection rest on a weak gain."""
        return selection.size > 1 and bool(self.weak(selection.members))

    def setting(self, section: str, name: str) -> str:
        """Reads a setting of config.json as text."""
        return str(self.config.get(section, {}).get(name, "(not recorded)"))


def read(workdir: str | pathlib.Path) -> Study:
    """Reads a workdir and computes the content of a report.

    Raises FileNotFoundError, which names them, where the folder or required files are missing; ValueError for a broken
    file, or a choice that does not fit the corruptions of the study; WorkdirError for a config.json that was edited;
    and SettingsError for a module of its config.imports that this process has not imported.
    """
    workdir = pathlib.Path(workdir)
    if not workdir.is_dir():
        raise FileNotFoundError(f"expected a workdir of overlap.py, found no folder {workdir}")
    if missing := [name for name in REQUIRED if not (workdir / name).is_file()]:
        raise FileNotFoundError(
            f"expected a workdir of overlap.py with {', '.join(REQUIRED)}, found {workdir} without {', '.join(missing)}; "
            "run overlap.py to its end"
        )
    config = read_config(workdir)
    if wrong := mismatch(config, CONFIG):
        raise DamagedFileError(f"{workdir / 'config.json'}: {wrong}; restore it")
    refuse_imports(config.get("imports", ()), workdir / "config.json")
    stored = {name: _json(workdir / name) for name in SHAPES if name != "section.json"}
    found, omitted = answers.read(workdir), {}
    names = study.corruptions_of(workdir, found)
    bits, seeds, other_code = study.answers_of(workdir, found, names)
    whole = study.Study.of(names, bits, seeds, found.conditions["classes"] or None)
    choice = stored["benchmark.json"] or {}
    threshold = float(choice.get("threshold", config.get("study", {}).get("threshold", 0.1)))
    if not 0 <= threshold <= 1:
        source = "benchmark.json" if "threshold" in choice else "config.json"
        raise ValueError(f"{workdir / source}: expected a threshold in [0, 1], found {threshold:g}")
    selection, stability = _select(whole, threshold, bool(choice.get("strict")))
    covering, covered = _coverage(workdir, whole, selection, stored["coverage.json"])
    return Study(
        workdir,
        config,
        stored["provenance.json"],
        short_names(names),
        whole,
        _clear(whole, bits, seeds),
        other_code,
        threshold,
        str(choice.get("written", "")),
        selection,
        stability,
        covering,
        covered,
        _categories(whole.overlap),
        _mixtures(found, config.get("study", {}).get("mixtures", ()), omitted),
        _summaries(workdir, found, names, stored["evaluation.json"], omitted),
        _compare(whole, stored["comparison.json"], omitted),
        stored["ranges.json"],
        stored["timing.json"],
        _distances(workdir, found, omitted),
        _sections(workdir, omitted),
        omitted,
        tuple(_file(workdir, path) for pattern in _FILES for path in sorted(workdir.glob(pattern))),
        _models(workdir),
    )


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Shortens `imagenet_c/gaussian_noise` to `gaussian noise`; names that differ only by their benchmark keep it."""
    last = [name.split("/", 1)[-1] for name in names]
    return tuple((short if last.count(short) == 1 else name).replace("_", " ") for short, name in zip(last, names))


def _json(path: pathlib.Path) -> dict[str, Any] | None:
    """Reads a file if it is there; one with a digest that was edited is refused, as tools.check reports it."""
    return read_record(path, shape=SHAPES[path.name], by_hand=True) if path.is_file() else None


def _clear(whole: study.Study, bits: np.ndarray, seeds: Sequence[int]) -> study.Study | None:
    kept = [k for k, flag in enumerate(whole.overlap.flags) if not flag]
    if len(kept) < 2:
        return None
    if len(kept) == len(whole.overlap.names):
        return whole
    rows = [0, *(1 + k for k in kept)]
    return study.Study.of([whole.overlap.names[k] for k in kept], bits[:, rows][:, :, rows], seeds)


def _select(whole: study.Study, threshold: float, strict: bool) -> tuple[Selection | None, Stability | None]:
    if algorithm.undefined(whole.overlap.overlap).all():
        return None, None
    overlap, samples = whole.overlap, whole.errors.unclipped_samples
    selection = select(overlap.overlap, overlap.names, threshold, strict, overlap.unclipped)
    drawn = algorithm.stability(np.maximum(samples, 0), overlap.names, threshold, strict, samples)
    return selection, drawn


def _coverage(
    workdir: pathlib.Path, whole: study.Study, selection: Selection | None, chosen: dict | None
) -> tuple[tuple[str, ...], Mapping[str, Coverage]]:
    """Tests coverage by the benchmark of coverage.json, as select_noc.py does, or else by the selected one, as
    overlap.py does; pairs with a weak gain do not count.
    """
    members = tuple(chosen["benchmark"]) if chosen else selection.members if selection else ()
    if unknown := sorted(set(members) - set(whole.overlap.names)):
        raise ValueError(
            f"{workdir / 'coverage.json'}: expected members among the corruptions of the study, found "
            f"{', '.join(unknown)}; test the coverage again with select_noc.py --coverage"
        )
    if not 0 < len(members) < len(whole.overlap.names):
        return (), {}
    weak = [flag == "weak" for flag in whole.overlap.flags]
    known = whole.overlap.unclipped.copy()
    known[weak] = known[:, weak] = np.nan
    by = {"se": whole.errors.overlap} if chosen else {"samples": whole.errors.unclipped_samples}
    return members, measure_coverage(known, whole.overlap.names, members, **by)


def _categories(overlap: Overlap) -> tuple[tuple[str, ...], ...]:
    try:
        return nk_benchmarks.categories(overlap.overlap, overlap.names).clusters
    except ValueError:  # fewer than two corruptions with a defined overlap, or overlaps that do not differ
        return ()


def _mixtures(found: answers.Answers, asked: Sequence[str], omitted: dict[str, str]) -> dict[str, tuple]:
    if not asked:
        return {}
    from corruptions.scoring.conditions import expand  # imports JAX, which takes seconds

    members = {mixture: expand([mixture.removeprefix("mixture=")]) for mixture in asked}
    conditions = [(CLEAN, 0), *((name, RANDOM) for name in dict.fromkeys(sum(members.values(), ())))]
    seeds = {seed for _, seed, *_ in found}
    for model in (STANDARD, *asked):
        seeds = {seed for seed in seeds if all((model, seed, *condition) in found for condition in conditions)}
        if not seeds:
            why = f"Gains of mixtures are not shown, answers of {model} are missing: run overlap.py to its end."
            omitted["mixtures"] = why
            return {}
    by_model = {
        model: {c[0]: np.mean([found.correct((model, seed, *c)) for seed in sorted(seeds)], axis=0) for c in conditions}
        for model in (STANDARD, *asked)
    }
    standard = by_model.pop(STANDARD)
    return {name: (study.mixture_gains(standard, model), members[name]) for name, model in by_model.items()}


def _summaries(
    workdir: pathlib.Path, found: answers.Answers, names: Sequence[str], recorded: dict | None, omitted: dict[str, str]
) -> list[Summary]:
    """Scores the models on benchmarks as the last command did that evaluated them."""
    if not found.conditions["image_shape"]:
        return []
    asked = (recorded or {}).get("eval", {})
    conditions = reference.conditions_of(workdir, found)
    try:
        choice = reference.choose(asked.get("reference", ""), asked.get("reference_mismatch", REFUSE), conditions)
    except (OSError, ValueError) as error:
        omitted["errors"] = (
            f"The reference of the errors cannot be used any more: {error}. Run eval.py with another one."
        )
        return []
    _, summaries = score(ImageErrors.of(found), choice, conditions, {"study": names}, stored=found.stored)
    return [summary for summary in summaries if not np.isnan(summary.mean)]


def _compare(whole: study.Study, chosen: dict | None, omitted: dict[str, str]) -> tuple | None:
    if chosen is None:
        return None
    other = pathlib.Path(chosen.get("workdirs", [chosen["first"]])[0])
    try:
        matrices, benchmarks = agreement.compare_two(
            study.read_study(other).measured, whole.measured, chosen["threshold"]
        )
    except (OSError, ValueError) as error:
        omitted["comparison"] = (
            f"The study {other} of comparison.json cannot be compared any more: {error}. Run "
            "python -m tools.tables WORKDIR WORKDIR --table=overlaps with its present place."
        )
        return None
    at_threshold = next(benchmark for benchmark in benchmarks if benchmark.threshold == chosen["threshold"])
    return chosen["first"], matrices, at_threshold, chosen["training_seconds"]


def _distances(workdir: pathlib.Path, found: answers.Answers, omitted: dict[str, str]) -> list[Distance]:
    """Reads the distances of schemes if a model measured them that the workdir holds now."""
    known = measured_in(workdir / "msd")
    if not known:
        return []
    if not known <= trained.trained_digests(workdir, (cell[:2] for cell in found)):
        omitted["distances"] = (
            f"The distances in {workdir / 'msd'} were measured in an earlier model, which was trained again since: run "
            f"python -m tools.msd --config=configs/msd.py --workdir={workdir} again."
        )
        return []
    return read_distances(workdir / "msd")


def _sections(workdir: pathlib.Path, omitted: dict[str, str]) -> tuple[tuple[dict, dict[str, bytes]], ...]:
    """Reads every FOLDER/section.json whose files, those of `made_from` {path from the workdir: SHA-256}, are as they were."""
    found = []
    for path in sorted(workdir.glob("*/section.json")):
        content = read_json(path, shape=SHAPES["section.json"])
        files = {workdir / name: digest for name, digest in content.get("made_from", {}).items()}
        if all(file.is_file() and digest_of_file(file) == digest for file, digest in files.items()):
            pictures = {name: path.with_name(f"{name}.png") for name in content["figures"]}
            found.append((content, {name: file.read_bytes() for name, file in pictures.items() if file.is_file()}))
        else:
            omitted[content["title"]] = f"{path} is of earlier answers: give the command that wrote it again."
    return tuple(found)


def _file(workdir: pathlib.Path, path: pathlib.Path) -> tuple[str, int, str]:
    return str(path.relative_to(workdir)), path.stat().st_size, digest_of_file(path)


def _models(workdir: pathlib.Path) -> tuple[tuple[str, str, str], ...]:
    models = []
    for path in sorted(workdir.glob("models/*/*/provenance.json")):
        record = _json(path)
        name = f"{path.parts[-3]}/{path.parts[-2]}"
        models.append((name, str(record.get("git_revision", "unknown")), str(record.get("device", "unknown"))))
    return tuple(models)
