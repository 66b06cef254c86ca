"""What in a workdir no longer is what its writer left: every file that has a digest, or follows
from one that has.

Nothing is changed. A damaged file is a line of the findings, whatever is in it.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator

from ml_collections import ConfigDict

from analysis import accuracies, answers, derived, tables
from analysis.lines import format_field, read_lines, sealed
from analysis.report import inputs
from runtime import bindings, files, meshes
from runtime.bindings import TRAINED
from training import loop, ranges

# Classes of models that an earlier revision trained on datasets of a fixed number.
_CLASSES = {"shapes": 10, "cifar10": 10, "cifar100": 100, "imagenet100": 100, "imagenet": 1000}


@dataclasses.dataclass
class Findings:
    """What a check found.

    Attributes:
      problems: a line for each file that is wrong: what is wrong with it, and what to run.
      verified: how many files are what their digests say.
      unbound: how many could only be read: they have no digest.
    """

    problems: list[str] = dataclasses.field(default_factory=list)
    verified: int = 0
    unbound: int = 0

    @contextlib.contextmanager
    def of(self, path: pathlib.Path, remedy: str) -> Iterator[None]:
        """Counts what the block finds of a file: its `count`, or its error as a problem.

        Args:
          path: of the file.
          remedy: what to do about a problem, unless the error says so.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - of any damage; the next file is checked all the same
            text = " ".join(str(error).split()) or type(error).__name__
            text = text if str(path) in text else f"{path}: {text}"
            self.problems.append(text if remedy in text else f"{text}; {remedy}")

    def count(self, bound: bool) -> None:
        """Counts a file that is right, by whether it has a digest."""
        self.verified += bound
        self.unbound += not bound


def is_workdir(path: pathlib.Path) -> bool:
    """Says whether a folder is a workdir: of train.py, overlap.py, tools.adapt or
    `eval.evaluate`.
    """
    return any((path / name).exists() for name in ("config.json", "final.json", "models", "answers"))


def verify(workdir: pathlib.Path) -> Findings:
    """Checks config, checkpoints, answers, tables, features and ranges of a workdir, and of the
    models in it.
    """
    findings = Findings()
    try:
        with files.locked(workdir):
            _verify(findings, workdir)
    except BlockingIOError:
        findings.problems.append(f"{workdir} is in use by another run; check it when that has ended")
    except OSError:  # it cannot be written, so nobody does
        _verify(findings, workdir)
    return findings


def _verify(findings, workdir):
    models = [
        *workdir.glob("models/*/*"),
        *workdir.glob(f"{TRAINED}*/models/*/*"),
    ]  # of projects.structural.enhancement_study
    for folder in [workdir, *sorted(path for path in models if is_workdir(path))]:
        _model(findings, folder)
    for folder in [workdir, *sorted(path for path in workdir.glob("stored/*") if path.is_dir())]:
        _results(findings, folder, workdir)
    measured = [*workdir.glob("*/settings.json"), *workdir.glob("features/run*/settings.json")]  # of tools.cbar
    for path in sorted(measured):
        _features(findings, path.parent, workdir)
    path = workdir / "ranges.json"
    if path.exists():
        with findings.of(path, f"move it away and run python -m tools.calibrate --workdir={workdir} again"):
            ranges.read_ranges(path)
            findings.count("sha256" in ranges.read_content(path))


def _model(findings, folder):
    """config.json, and the checkpoint that final.json names."""
    command, config = _command(folder), None
    with findings.of(folder / "config.json", f"give the command that made the folder again: {command}"):
        config = bindings.read_config(folder)
        findings.count(bool(bindings.config_digests(folder)))
    if not (folder / "final.json").exists():
        return
    with findings.of(folder / "final.json", f"give the command that made the folder again: {command}"):
        final = bindings.read_final(folder)
        config = config and ConfigDict(config)
        classes = final.get("num_classes") or (config and _CLASSES.get(config.dataset.name))
        if config and not classes:  # of a folder of images: the network cannot be built without them
            findings.count(False)
        elif config:
            loop.read_back(config, config.dataset.image_size, classes, folder, mesh=meshes.data_mesh(1))
            findings.count(True)


def _results(findings, folder, workdir):
    """Answers, the tables that follow from them, and other tables and records of a folder of
    results.
    """
    command = f"run again: {_command(folder, 'evaluation.json') or _command(workdir)}"
    draws = None
    if (folder / "answers" / "draws.json").exists():
        with findings.of(folder / "answers" / "draws.json", f"remove {folder / 'answers'} and {command}"):
            draws = bindings.digest(files.read_json(folder / "answers" / "draws.json"))
            findings.count(False)
    for path in sorted((folder / "answers").glob("*.npz")):
        with findings.of(path, f"remove it and {command}"):
            findings.count(_answers(path, draws, workdir))
    counts = None
    for path in sorted(folder.glob("*.csv")):
        with findings.of(path, command):
            bound = sealed(path.read_bytes().decode("utf-8")) is not None
            if path.name == "counts.csv":
                counts = derived.read_counts(path)
                bound = bound or (folder / "answers").is_dir()
            else:
                rows = [fields for _, fields in read_lines(path)]
                if path.name == "scores.csv" and counts:
                    _same_scores(path, rows, counts)
            findings.count(bound)
    if counts and all((folder / name).exists() for name in ("overlap.csv", "overlap_long.csv")):
        with findings.of(folder / "overlap.csv", command):
            inputs.read_overlaps(folder, counts)
    for path in sorted(folder.glob("*.json")):
        if path.name not in ("config.json", "final.json", "ranges.json"):
            with findings.of(path, f"move it away and {command}"):
                findings.count(_record(path))


def _answers(path, draws, workdir):
    """Whether answers are bound; raises ValueError where to something else than what is there."""
    packed, made_from = answers.read_packed(path)
    condition = derived.condition_of(path.stem)
    if condition is None:
        raise ValueError(f"{path}: expected the name of a condition, found {path.stem}")
    natural = condition[0].startswith((tables.NATURAL, tables.OF_CLASSES))  # to images of their own
    if draws and not natural and made_from.shown not in ("", draws):
        raise ValueError(f"{path}: expected answers to the images that draws.json tells of, found those to others")
    for key, bits in packed.items():
        before, now = made_from.models.get(key, ""), bindings.model_digest(workdir, *key)
        if before and now and before != now:
            raise ValueError(
                f"{path}: expected answers of {key[0]}, seed {key[1]}, as it is, found those of an earlier model"
            )
        if made_from.number and len(bits) != -(-made_from.number // 8):
            raise ValueError(f"{path}: expected answers to {made_from.number} images, found {len(bits)} bytes")
    return bool(made_from.shown)


def _same_scores(path, rows, counts):
    expected = [[format_field(value) for value in row] for row in accuracies.score_rows(counts)]
    if rows[1:] != expected:
        raise ValueError(f"{path}: expected what follows from counts.csv, found something else")


def _record(path):
    """Whether a JSON file names digests of files beside it; raises ValueError where they are others
    by now.
    """
    content = files.read_json(path)
    known = content.get("inputs")
    beside = {name: digest for name, digest in (known or {}).items() if (path.parent / name).is_file()}
    for name, digest in beside.items():
        if files.sha256(path.parent / name) != digest:
            raise ValueError(f"{path}: expected to be made from the {name} beside it, found that it was from another")
    return bool(beside)


def _features(findings, folder, workdir):
    """A folder of `evaluation.distances.centres.Measured`."""
    command = f"run again: {_command(folder) or _command(workdir)}"
    now = {}
    with findings.of(folder / "settings.json", f"remove {folder} and {command}"):
        asked = files.read_json(folder / "settings.json")
        model = bindings.model_digest(workdir, str(asked.get("model", "standard")), asked.get("model_seed", 0))
        now = {"model": model, "settings": bindings.digest(asked)}
        findings.count(False)
    for path in sorted(folder.rglob("*.npz")):
        with findings.of(path, f"remove it and {command}"):
            _, made_from = bindings.read_arrays(path)
            for what, value in now.items():
                if value and made_from.get(what, value) != value:
                    raise ValueError(f"{path}: expected results of the {what} that is there, found those of another")
            findings.count(bool(made_from))
    for path in sorted(folder.glob("*.csv")):
        with findings.of(path, command):
            list(read_lines(path))
            findings.count(sealed(path.read_text(encoding="utf-8")) is not None)


def _command(folder, name="provenance.json"):
    """The command that a record in a folder names, or ""."""
    try:
        record = files.read_json(folder / name)
        return str(record.get("provenance", record).get("command", ""))
    except (OSError, ValueError, AttributeError):
        return ""
