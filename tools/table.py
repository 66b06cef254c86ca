"""Puts several models and benchmarks in one table: ImageNet-C, ImageNet-NOC, C-bar, clean images.

    python -m tools.table runs/resnet50 runs/augmix runs/deepaugment --out=runs/table

Reads workdirs that eval.py or overlap.py has evaluated, as far as they are, and prints the mean
error, mCE and relative mCE of each benchmark and the gap between C-bar and C, with standard errors
and the spread between seeds. The best number of a column is bold only where it is significantly
smaller than each other: paired on the stored answers to the same test images, corrected after Holm.
Writes table.md, table.csv and table.tex into the folder --out. Workdirs of other conditions
(dataset, size, ranges, frost ...) than the first, or than the reference, are refused, or marked
with --mismatch=label.

    python -m tools.table runs/alexnet --write_reference=alexnet_cifar10.json --models=standard

writes a model's errors as a reference, for --config.eval.reference of eval.py and overlap.py.
"""

from runtime import command  # isort: skip

import pathlib

from absl import app, flags

from analysis.errors import joint, markup, reference
from analysis.errors.flags import define_reference


def define_flags():
    define_reference()
    flags.DEFINE_list("measures", list(joint.COLUMNS), f"Columns of each benchmark, of {', '.join(joint.COLUMNS)}.")
    flags.DEFINE_list("benchmarks", [], "Only these benchmarks.")
    flags.DEFINE_list("models", [], "Only these models, by name.")
    flags.DEFINE_string("out", None, "Folder of the results; without it they are only printed.")
    flags.DEFINE_string("write_reference", None, "Write the one model of the one workdir as a reference to this file.")


def run(folders, given):
    """Prints and writes the table; returns it, or None where a reference was asked for."""
    if given.write_reference:
        _write_reference(folders, given)
        return None
    if unknown := [name for name in given.measures if name not in joint.COLUMNS]:
        raise ValueError(f"expected --measures of {', '.join(joint.COLUMNS)}, found {', '.join(unknown)}")
    evaluated = [joint.read(*pair) for pair in zip(folders, joint.names(folders), strict=True)]
    table = joint.joint(
        evaluated,
        reference=given.reference,
        mismatch=given.mismatch,
        measures=given.measures,
        benchmarks=given.benchmarks,
        models=given.models,
    )
    print(markup.markdown(table))
    if given.out:
        print("written to " + ", ".join(map(str, markup.write(pathlib.Path(given.out), table))))
    return table


def _write_reference(folders, given):
    if len(folders) > 1 or len(given.models) > 1:
        raise ValueError(f"expected one workdir and at most one of --models, found {len(folders)} and {given.models}")
    written = reference.of_model(folders[0], given.models[0]) if given.models else reference.of_workdir(folders[0])
    reference.write(given.write_reference, written)
    print(f"written to {given.write_reference}: {written.name}")


def main(argv):
    if len(argv) < 2:
        raise app.UsageError("expected one or more workdirs: python -m tools.table WORKDIR ...")
    run([pathlib.Path(path) for path in argv[1:]], command.given(argv[:1]))


if __name__ == "__main__":
    define_flags()
    command.run(main)
