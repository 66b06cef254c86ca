"""Checks folders for files that are damaged, edited or stale, and names the commands that mend them.

    python -m tools.check runs/overlap_shapes runs/aug_fog ~/.cache/jax-corruptions

Takes workdirs, caches of decoded images, prepared ImageNets and datasets of corruptions.write. Reads every file that
has a digest and prints a line for each that is wrong. Tables and figures follow from these files and are not read.
Changes nothing. The exit status is 1 when something is wrong, else 0.
"""

from runtime import command  # isort: skip

import pathlib

from absl import app

from data import cache
from data.corrupted import dataset
from data.imagenet import store
from evaluation import verification
from evaluation.verification import Findings


def _is_cache(path):
    return (path / "meta.json").exists() or any(path.glob("*/meta.json"))


def _found(problems, recorded):
    """Makes the check of a kind of folder from its lists of problems and its number of files."""

    def verify(path):
        lines = problems(path)
        try:
            return Findings(lines, max(0, recorded(path) - len(lines)))
        except (ValueError, RuntimeError):  # the record of its files is damaged, as a line says
            return Findings(lines)

    return verify


# Kind of folder: (name, whether a folder is one, its check). The first that says yes checks it.
KINDS = (
    ("workdir", verification.is_workdir, verification.verify),
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
    """Prints what is wrong with each folder and how much was verified; returns how much is wrong."""
    wrong = 0
    for path in paths:
        findings = check(path)
        for line in findings.problems:
            print(line)
        print(f"{path}: {findings.verified} verified, {len(findings.problems)} wrong", flush=True)
        wrong += len(findings.problems)
    return wrong


def main(argv):
    if len(argv) < 2:
        raise app.UsageError("expected one or more folders, python -m tools.check FOLDER")
    return 1 if run([pathlib.Path(path) for path in argv[1:]]) else 0


if __name__ == "__main__":
    command.run(main)
