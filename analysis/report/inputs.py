"""What a report is made of: the result files in a workdir of overlap.py, read strictly and held
against each other.
"""

import hashlib
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis import accuracies, answers, derived, shapes
from analysis.distances.results import Distance, read_distances
from analysis.errors.summary import COLUMNS, Summary
from analysis.lines import read_lines
from analysis.overlap import mixtures, overlap_matrix
from analysis.overlap.files import pair_matrix, read_overlap, read_overlap_long
from analysis.overlap.score import Overlap
from analysis.overlap.uncertainty import Errors, standard_errors
from analysis.tables import Count
from runtime.command import import_all
from runtime.files import DamagedFileError, read_json
from runtime.json_shapes import mismatch
from runtime.workdirs import read_config

REQUIRED = ("config.json", "provenance.json", "counts.csv", "overlap.csv", "overlap_long.csv")
OPTIONAL = {  # file -> what a JSON file must hold
    "scores.csv": None,
    "errors_summary.csv": None,
    "mixtures.csv": None,
    "benchmark.json": shapes.BENCHMARK,
    "coverage.json": shapes.COVERAGE,
    "stability.json": shapes.STABILITY,
    "ranges.json": shapes.RANGES,
    "comparison.json": shapes.COMPARISON,
    "timing.json": shapes.TIMING,
    "samples.png": None,
    "msd/msd.csv": None,
}
_TOLERANCE = 1e-9


class Study(NamedTuple):
    """A study as its report needs it.

    Attributes:
      workdir: folder.
      config, provenance: as stored.
      names: corruptions, in the order of overlap.csv; labels: the same, as short as they stay
        distinct.
      overlap: the `Overlap`, computed from counts.csv and found equal to overlap.csv and
        overlap_long.csv.
      seeds: of the trainings.
      errors: `analysis.overlap.uncertainty.Errors`; where no answers are stored, `overlap` is the `se`
        of overlap_long.csv.
      benchmark, coverage, stability, ranges, comparison, timing: contents of the optional JSON files, or
        None.
      mixtures: rows of mixtures.csv as dictionaries, or None.
      samples: bytes of samples.png, or None.
      error_summaries: rows of errors_summary.csv (`analysis.errors.summary.Summary`), or None.
      distances: distances of schemes that tools.msd measured, or None.
      sections: (content of FOLDER/section.json, {name: PNG beside it}) of every project that left one.
      files: (name, bytes, SHA-256) of every file that was read.
      models: (model/seed, revision, device) of every trained model's own provenance, where
        recorded.
      revisions: of the code that the tables name in their first lines, {file: revision}.
    """

    workdir: pathlib.Path
    config: dict
    provenance: dict
    names: tuple[str, ...]
    labels: tuple[str, ...]
    overlap: Overlap
    seeds: tuple[int, ...]
    errors: Errors
    benchmark: dict | None
    coverage: dict | None
    stability: dict | None
    ranges: dict | None
    comparison: dict | None
    timing: dict | None
    mixtures: list[dict] | None
    samples: bytes | None
    error_summaries: list[Summary] | None
    distances: list[Distance] | None
    sections: tuple[tuple[dict, dict[str, bytes]], ...]
    files: tuple[tuple[str, int, str], ...]
    models: tuple[tuple[str, str, str], ...]
    revisions: dict[str, str]


def read(workdir: str | pathlib.Path) -> Study:
    """Reads a workdir.

    Raises:
      FileNotFoundError: no such folder, or one without the required files (all of them named).
      ValueError: a file that is broken, or files that do not belong together.
      WorkdirError: a config.json that was edited.
      SettingsError: a module of config.imports that is not found.
    """
    workdir = pathlib.Path(workdir)
    if not workdir.is_dir():
        raise FileNotFoundError(f"expected a workdir of overlap.py, found no folder {workdir}")
    missing = [name for name in REQUIRED if not (workdir / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"expected a workdir of overlap.py with {', '.join(REQUIRED)}, found {workdir} without {', '.join(missing)}; "
            "run overlap.py to its end"
        )
    config, provenance = read_config(workdir), read_json(workdir / "provenance.json", shape=shapes.PROVENANCE)
    if wrong := mismatch(config, shapes.CONFIG):
        raise DamagedFileError(f"{workdir / 'config.json'}: {wrong}; restore it")
    import_all(config.get("imports", ()))
    counts = derived.read_counts(workdir / "counts.csv")
    overlap, file_se = read_overlaps(workdir, counts, _classes(workdir))
    names = overlap.names
    accuracy, number, seeds = accuracies.accuracies(counts, names)
    bits = _bits(workdir, names, seeds)
    errors = standard_errors(accuracy, number, bits)
    if bits is None:
        errors = errors._replace(overlap=file_se)
    present = [name for name in (*REQUIRED, *OPTIONAL) if (workdir / name).is_file()]
    in_workdir = [name for name in OPTIONAL if name.endswith(".json") and "/" not in name]
    optional = {name: _optional(workdir / name, OPTIONAL[name], names) for name in in_workdir}
    sections = sorted(workdir.glob("*/section.json"))
    return Study(
        workdir,
        config,
        provenance,
        names,
        short_names(names),
        overlap,
        seeds,
        errors,
        *optional.values(),
        _mixtures(workdir / "mixtures.csv"),
        (workdir / "samples.png").read_bytes() if "samples.png" in present else None,
        _summaries(workdir / "errors_summary.csv") if "errors_summary.csv" in present else None,
        read_distances(workdir / "msd") if "msd/msd.csv" in present else None,
        tuple(map(_section, sections)),
        tuple(_file(workdir / name) for name in (*present, *sections)),
        _models(workdir),
        _revisions(workdir, present),
    )


def read_overlaps(
    workdir: pathlib.Path, counts: Sequence[Count], num_classes: int | None = None
) -> tuple[Overlap, np.ndarray]:
    """Reads the overlaps of a study: (those that follow from its counts, standard errors of
    overlap_long.csv); `num_classes` flags those of a standard model near chance.

    Raises:
      FileNotFoundError: no overlap.csv or overlap_long.csv.
      ValueError: a table that is broken, or does not follow from the counts.
    """
    names, matrix = read_overlap(workdir / "overlap.csv")
    if len(names) < 2:
        raise ValueError(f"{workdir / 'overlap.csv'}: expected at least two corruptions, found {names}")
    accuracy, number, _ = accuracies.accuracies(counts, names)
    overlap = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
    return overlap, _check(workdir, overlap, matrix, read_overlap_long(workdir / "overlap_long.csv"))


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Shortens `imagenet_c/gaussian_noise` to `gaussian noise`; names that differ only by their
    benchmark keep it.
    """
    last = [name.split("/", 1)[-1] for name in names]
    return tuple((short if last.count(short) == 1 else name).replace("_", " ") for short, name in zip(last, names))


def _check(workdir, overlap, matrix, pairs):
    """Standard errors of overlap_long.csv; refuses tables that were not made from the counts beside
    them.
    """
    index = {name: k for k, name in enumerate(overlap.names)}
    _same(workdir / "overlap.csv", overlap, matrix, overlap.overlap)
    transfer = np.array(overlap.transfer)
    for pair in pairs:
        if pair.i in index and pair.j in index:
            i, j = index[pair.i], index[pair.j]
            transfer[i, j], transfer[j, i] = pair.T_ij, pair.T_ji
    _same(workdir / "overlap_long.csv", overlap, transfer, overlap.transfer)
    try:
        return pair_matrix(pairs, overlap.names, lambda pair: pair.se)
    except ValueError as error:
        raise ValueError(f"{workdir / 'overlap_long.csv'}: {error}") from None


def _same(path, overlap, stored, computed):
    different = ~np.isclose(stored, computed, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if different.any():
        i, j = np.argwhere(different)[0]
        raise ValueError(
            f"{path}: expected {computed[i, j]} for ({overlap.names[i]}, {overlap.names[j]}), which follows from counts.csv, "
            f"found {stored[i, j]}; run overlap.py again"
        )


def _optional(path, shape, names=None):
    """Content of an optional JSON file, or None; refuses one without its keys, or that is of other
    corruptions.
    """
    if not path.is_file():
        return None
    content = read_json(path, shape=shape)
    unknown = sorted(set(content.get("members", ())) - set(names)) if names is not None else ()
    if unknown:
        raise ValueError(
            f"{path}: expected members among the corruptions of overlap.csv, found {', '.join(unknown)}; make it again"
        )
    return content


def _mixtures(path):
    if not path.is_file():
        return None
    return [dict(zip(mixtures.COLUMNS, fields)) for _, fields in read_lines(path, mixtures.COLUMNS)]


def _summaries(path):
    rows = (fields for _, fields in read_lines(path, COLUMNS))
    return [Summary(*row[:4], *map(float, row[4:7]), int(row[7]), *row[8:]) for row in rows]


def _section(path):
    content = read_json(path, shape=shapes.SECTION)
    pictures = {name: path.with_name(f"{name}.png") for name in content["figures"]}
    return content, {name: picture.read_bytes() for name, picture in pictures.items() if picture.is_file()}


def _file(path):
    content = path.read_bytes()
    return path.name, len(content), hashlib.sha256(content).hexdigest()


def _bits(workdir, names, seeds):
    """Answers of the study, where the workdir has some."""
    if not any((workdir / answers.FOLDER).glob("*.npz")):
        return None
    bits, found = answers.read(workdir).study(names)
    return bits[[found.index(seed) for seed in seeds]]


def _classes(workdir):
    """Classes of the study's networks, where a model says so."""
    finals = sorted(workdir.glob("models/*/*/final.json"))
    return read_json(finals[0]).get("num_classes") if finals else None


def _models(workdir):
    models = []
    for path in sorted(workdir.glob("models/*/*/provenance.json")):
        record = read_json(path, shape=shapes.PROVENANCE)
        name = f"{path.parts[-3]}/{path.parts[-2]}"
        models.append((name, str(record.get("git_revision", "unknown")), str(record.get("device", "unknown"))))
    return tuple(models)


def _revisions(workdir, present):
    """The revision in the comment of each table's first line."""
    revisions = {}
    for name in present:
        if name.endswith(".csv"):
            with open(workdir / name, encoding="utf-8") as file:
                match = re.match(r"#.*\brevision (\S+)", file.readline())
            if match:
                revisions[name] = match[1]
    return revisions
