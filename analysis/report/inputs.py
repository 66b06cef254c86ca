"""The inputs of a report: the answers and result files in a workdir of overlap.py, read strictly."""

import hashlib
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from analysis import shapes
from analysis.distances.results import Distance, read_distances
from analysis.errors.summary import Summary
from analysis.overlap.score import Overlap
from analysis.overlap.study import read_study
from analysis.overlap.uncertainty import Errors
from runtime.command import refuse_imports
from runtime.files import DamagedFileError, read_json
from runtime.json_shapes import mismatch
from runtime.workdirs import read_config

REQUIRED = ("config.json", "provenance.json")
OPTIONAL = {  # file -> shape of a JSON file
    "counts.csv": None,
    "overlap.csv": None,
    "overlap_long.csv": None,
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


class Study(NamedTuple):
    """Everything that a report shows.

    Attributes:
      workdir: folder.
      config, provenance: as stored.
      names: corruptions, in the order of overlap.csv; labels: the same, as short as they stay
        distinct.
      overlap: the `Overlap`, computed from the answers.
      seeds: of the trainings.
      errors: standard errors of all of them.
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
      revisions: {table: revision of the code that wrote it}, from provenance.json.
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

    @property
    def threshold(self) -> float:
        """Gives the threshold of the benchmark, or else of the study's settings."""
        if self.benchmark:
            return float(self.benchmark["threshold"])
        return float(self.config.get("study", {}).get("threshold", 0.1))

    def setting(self, section: str, name: str) -> str:
        """Reads a setting of config.json as text."""
        return str(self.config.get(section, {}).get(name, "(not recorded)"))


def read(workdir: str | pathlib.Path) -> Study:
    """Reads a workdir.

    Raises:
      FileNotFoundError: no such folder, or one without the required files (all of them named).
      ValueError: a file that is broken, or files that do not belong together.
      WorkdirError: a config.json that was edited.
      SettingsError: a module of its config.imports that this process has not imported.
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
    refuse_imports(config.get("imports", ()), workdir / "config.json")
    study = read_study(workdir)
    names = study.overlap.names
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
        study.overlap,
        study.seeds,
        study.errors,
        *optional.values(),
        _mixtures(workdir / "mixtures.csv"),
        (workdir / "samples.png").read_bytes() if "samples.png" in present else None,
        _summaries(workdir / "errors_summary.csv") if "errors_summary.csv" in present else None,
        read_distances(workdir / "msd") if "msd/msd.csv" in present else None,
        tuple(map(_section, sections)),
        tuple(_file(workdir / name) for name in (*present, *sections)),
        _models(workdir),
        _revisions(provenance, present),
    )


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Shortens `imagenet_c/gaussian_noise` to `gaussian noise`; names that differ only by their
    benchmark keep it.
    """
    last = [name.split("/", 1)[-1] for name in names]
    return tuple((short if last.count(short) == 1 else name).replace("_", " ") for short, name in zip(last, names))


def _optional(path, shape, names):
    """Reads an optional JSON file, or returns None; refuses another shape, and members outside `names`."""
    if not path.is_file():
        return None
    content = read_json(path, shape=shape)
    unknown = sorted(set(content.get("members", ())) - set(names))
    if unknown:
        raise ValueError(
            f"{path}: expected members among the corruptions of the study, found {', '.join(unknown)}; make it again"
        )
    return content


def _mixtures(path):
    return pd.read_csv(path, dtype=str).to_dict("records") if path.is_file() else None


def _summaries(path):
    return [Summary(*row) for row in pd.read_csv(path).itertuples(index=False, name=None)]


def _file(path):
    content = path.read_bytes()
    return path.name, len(content), hashlib.sha256(content).hexdigest()


def _section(path):
    content = read_json(path, shape=shapes.SECTION)
    pictures = {name: path.with_name(f"{name}.png") for name in content["figures"]}
    return content, {name: picture.read_bytes() for name, picture in pictures.items() if picture.is_file()}


def _models(workdir):
    models = []
    for path in sorted(workdir.glob("models/*/*/provenance.json")):
        record = read_json(path, shape=shapes.PROVENANCE)
        name = f"{path.parts[-3]}/{path.parts[-2]}"
        models.append((name, str(record.get("git_revision", "unknown")), str(record.get("device", "unknown"))))
    return tuple(models)


def _revisions(provenance, present):
    """The revision that wrote each table, where provenance.json tells it."""
    written = provenance.get("files", {})
    return {name: written[name]["git_revision"] for name in present if "git_revision" in written.get(name, {})}
