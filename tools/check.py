"""Checks folders for files that are damaged, edited or stale, and names the commands that mend them.

    python -m tools.check runs/overlap_shapes runs/aug_fog ~/.cache/jax-corruptions

Takes workdirs, folders of corruptions.evaluate, caches of decoded images, prepared ImageNets and datasets of
corruptions.write. Reads the settings, checkpoints, answers, temperatures, features, streams, calibrated ranges, selections
and other results in JSON of a workdir, and prints a line for each mismatch. Answers are compared with their model, with the
test images, and with version, severity table, options, generator and code of their corruption; data.json with the training
images; benchmark.json with the answers that it follows from. No model runs.

A file counts as verified when it was compared with all that it depends on. Files of which some is not at hand, and results
in JSON without a digest, which earlier releases wrote, are counted as not compared, with the reason. Tables and figures are
not read, nor are files of early exits, flips and scans. Changes nothing. The exit status is 1 when something is wrong, else 0.
"""

from runtime import command  # isort: skip

import collections
import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Iterator

from absl import app
from ml_collections import ConfigDict

from analysis import answers, trained
from analysis.distances import experiments
from corruptions.augment import stored
from corruptions.scoring.folder import earlier_files, is_folder, read_earlier
from data import cache
from data.corrupted import dataset
from data.imagenet import store
from evaluation import compared, temperature
from evaluation.streams.run import REMEDY as OF_STREAMS
from runtime import artifacts, files, meshes
from runtime.workdirs import TRAINED, read_config, read_final
from training import loop, ranges

RESULTS = {
    f"{name}.json" for name in ("benchmark", "coverage", "comparison", "evaluation", "section", "stability", "timing")
}


@dataclasses.dataclass
class Findings:
    """A line for each fault with the command that repairs it, the number of verified files, and the files that could not be
    compared with all that they depend on, by the reason.
    """

    problems: list[str] = dataclasses.field(default_factory=list)
    verified: int = 0
    not_compared: dict[str, list[pathlib.Path]] = dataclasses.field(
        default_factory=functools.partial(collections.defaultdict, list)
    )

    @contextlib.contextmanager
    def of(self, path: pathlib.Path, remedy: str) -> Iterator[compared.Compared]:
        """Counts a file as verified if the block raises nothing and finds nothing; errors and mismatches become problems."""
        found = compared.Compared()
        try:
            yield found
        except Exception as error:  # noqa: BLE001 - of any damage; the next file is checked all the same
            found.wrong.append(" ".join(str(error).split()) or type(error).__name__)
        for text in dict.fromkeys(found.wrong):
            line = text if str(path) in text else f"{path}: {text}"
            self.problems.append(line if remedy in line else f"{line}; {remedy}")
        if not found.wrong:
            for reason in dict.fromkeys(found.unknown):
                self.not_compared[reason].append(path)
            self.verified += not found.unknown

    @property
    def notes(self) -> list[str]:
        """Says for each reason which files could not be compared."""
        return [
            f"{paths[0]}{f' and {len(paths) - 1} more' * (len(paths) > 1)}: not compared, {reason}"
            for reason, paths in self.not_compared.items()
        ]

    @property
    def summary(self) -> str:
        """Counts the files."""
        skipped = len(set().union(*self.not_compared.values()))
        return f"{self.verified} verified, {len(self.problems)} wrong{f', {skipped} not compared' * bool(skipped)}"


def is_workdir(path: pathlib.Path) -> bool:
    """Returns True for a workdir of train.py, overlap.py, tools.adapt, `eval.evaluate` or `corruptions.evaluate`."""
    return is_folder(path) or any((path / name).exists() for name in ("config.json", "final.json", "models"))


def verify_workdir(workdir: pathlib.Path) -> Findings:
    """Checks config, checkpoints, answers, features and ranges of a workdir, and of the models in it."""
    findings = Findings()
    try:
        with files.locked(workdir):
            _verify(findings, workdir)
    except BlockingIOError:
        findings.problems.append(f"{workdir} is in use by another run; check it when that has ended")
    except OSError:  # the folder is read-only, so no run writes it
        _verify(findings, workdir)
    return findings


def _verify(findings, workdir):
    models = [*workdir.glob("models/*/*"), *workdir.glob(f"{TRAINED}*/models/*/*")]  # the latter: enhancement studies
    for folder in [workdir, *sorted(path for path in models if is_workdir(path))]:
        if (folder / "config.json").exists() or not is_folder(folder):  # a folder of corruptions.evaluate has none
            _model(findings, folder)
    again = f"run again: {_command(workdir)}"
    folders = ("answers", "stored/*/answers", "superclasses/*/answers")
    dataset = functools.cache(functools.partial(compared.dataset_of, workdir))
    if (path := workdir / "data.json").exists():
        with findings.of(path, "train in another workdir, or give the same images") as found:
            _add(found, compared.training_data(files.read_json(path), dataset))
    for path in sorted(path for folder in folders for path in workdir.glob(f"{folder}/[!.]*.npz")):
        with findings.of(path, f"remove it and {again}") as found:
            _add(found, compared.answers(*answers.read_answered(path), workdir, dataset))
    for path in earlier_files(workdir):
        with findings.of(path, "evaluate in another folder") as found:
            for record, by_model in read_earlier(path):
                _add(found, compared.answers(by_model, record, workdir, dataset))
    for path in sorted(workdir.glob("streams/*.npz")):
        with findings.of(path, OF_STREAMS):
            artifacts.read(path)
    measured = [*workdir.glob("*/settings.json"), *workdir.glob("features/run*/settings.json")]  # the latter: C-bar
    for path in sorted(measured):
        _features(findings, path, workdir)
    if (path := workdir / temperature.FILE).exists():
        with findings.of(path, f"remove it and {again}"):
            _temperatures(path, workdir)
    if (path := workdir / "ranges.json").exists():
        with findings.of(path, f"move it away and run python -m tools.calibrate --workdir={workdir} again"):
            ranges.read_ranges(path)
    for path in sorted(
        path for folder in ("", "stored/*/", "superclasses/*/") for path in workdir.glob(f"{folder}*.json")
    ):
        if path.name in RESULTS or path.name.startswith("benchmark_"):
            with findings.of(path, f"remove it and {again}") as found:
                content = artifacts.read_record(path, by_hand=True)
                if artifacts.SEAL not in files.read_json(path):
                    found.unknown.append("it holds no digest: an earlier release or a user wrote it")
                if path.stem.partition("_")[0] == "benchmark":
                    _add(found, compared.selection(content, workdir))


def _add(found, more):
    found.wrong += more.wrong
    found.unknown += more.unknown


def _model(findings, folder):
    """Checks config.json, and the checkpoint that final.json names."""
    remedy, config = f"give the command that made the folder again: {_command(folder)}", None
    with findings.of(folder / "config.json", remedy):
        config = read_config(folder)
    if (folder / "final.json").exists():
        with findings.of(folder / "final.json", remedy):
            classes = read_final(folder)["num_classes"]
            if config:
                size = config["dataset"]["image_size"]
                loop.read_back(ConfigDict(config), size, classes, folder, mesh=meshes.data_mesh(1))


def _temperatures(path, workdir):
    """Checks fitted temperatures; raises ValueError if a model was trained again since."""
    entries = {name.rpartition("|"): entry["model"] for name, entry in temperature.read(path)["models"].items()}
    models = {(name, int(seed)): digest for (name, _, seed), digest in entries.items()}
    _refuse_stale(path, workdir, models, "the temperature")


def _refuse_stale(path, workdir, models, what):
    for (name, seed), digest in models.items():
        if trained.is_stale(digest, trained.trained_digest(workdir, name, seed)):
            raise ValueError(f"{path}: expected {what} of {name}, seed {seed}, as it is, found an earlier model's")


def _features(findings, path, workdir):
    folder, again, now = path.parent, f"run again: {_command(path.parent) or _command(workdir)}", {}
    with findings.of(path, f"remove {folder} and {again}"):
        asked = files.read_json(path)
        model = trained.trained_digest(workdir, str(asked.get("model", "standard")), asked.get("model_seed", 0))
        now = {"model": model, "settings": artifacts.digest(asked)}
    for file in sorted(folder.rglob("*.npz")):
        with findings.of(file, f"remove it and {again}"):
            if file.name.partition("_")[0] in experiments.KINDS:  # transforms for tools.scheme_study
                stored.read(file)
                continue
            made_from = artifacts.read(file).made_from
            for what, value in now.items():
                if value and made_from.get(what) != value:
                    raise ValueError(f"{file}: expected results of the present {what}, found those of another")


def _command(folder):
    """Reads the command that made a folder, or "" if its record is damaged."""
    try:
        record = files.read_json(folder / "provenance.json")
        return str(record.get("provenance", record).get("command", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _found(problems, recorded):
    """Makes the check of a kind of folder from its lists of problems and its number of files."""

    def verify(path):
        lines = problems(path)
        try:
            return Findings(lines, max(0, recorded(path) - len(lines)))
        except (ValueError, RuntimeError):  # the record of its files is damaged; a line already says so
            return Findings(lines)

    return verify


def _is_cache(path):
    return any(path.glob("meta.json")) or any(path.glob("*/meta.json"))


# Kind of folder: (name, test for this kind, check). The first kind whose test is true checks the folder.
KINDS = (
    ("workdir", is_workdir, verify_workdir),
    ("prepared ImageNet", lambda path: (path / store.META).exists(), _found(store.problems, store.recorded)),
    ("written dataset", lambda path: (path / dataset.MANIFEST).exists(), _found(dataset.problems, dataset.recorded)),
    ("cache of decoded images", _is_cache, _found(cache.verify, cache.recorded)),
)


def check(path: pathlib.Path) -> Findings:
    """Checks a folder of any kind."""
    for _, is_kind, verify in KINDS:
        if is_kind(path):
            return verify(path)
    expected = ", ".join(name for name, *_ in KINDS)
    return Findings([f"{path}: expected a folder ({expected}), found {'another' if path.is_dir() else 'none'}"])


def run(paths: list[pathlib.Path]) -> int:
    """Prints the faults of each folder and counts the verified files; returns the number of faults."""
    wrong = 0
    for path in paths:
        findings = check(path)
        print(*findings.problems, *findings.notes, f"{path}: {findings.summary}", sep="\n", flush=True)
        wrong += len(findings.problems)
    return wrong


def main(argv):
    if len(argv) < 2:
        raise app.UsageError("expected one or more folders, python -m tools.check FOLDER")
    return 1 if run([pathlib.Path(path) for path in argv[1:]]) else 0


if __name__ == "__main__":
    command.run(main)
