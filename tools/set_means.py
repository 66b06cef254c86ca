"""Means over the corruptions that overlap most, and over the rest: where does a model gain?

    python -m tools.set_means --overlap=runs/overlap/overlap.csv --counts="runs/*/counts.csv" --size=8 --out=FILE

Cuts the corruptions of a measured matrix into the `size` of largest mean overlap (Set1) and the
rest (Set2), as Table 1 of the paper on the overlapping score does. Prints, for every model in the
tables, the mean error over each set (over severities and seeds) and its gain over the standard
model; writes them to FILE (default: set_means.json beside the matrix). Where two tables hold the
same model and seed, models are called by their workdirs.

    python -m tools.set_means --overlap=runs/overlap/overlap.csv --counts="runs/robust/*/counts.csv" \\
        --measure=CE --reference=runs/robust/alexnet --beside=noc/border,noc/obstruction

is that table as it is printed: raw CE, and beside it the relative CE of single corruptions.
"""

from runtime import command  # isort: skip

import glob
import pathlib

from absl import flags

from analysis import tables
from analysis.comparison import set_errors
from analysis.comparison.set_means import set_means, set_means_text, split_by_overlap
from analysis.errors.flags import define_reference
from analysis.errors.scores import CE, FIELDS, MEAN_ERROR, RELATIVE
from analysis.overlap.files import read_overlap
from runtime.files import write_json
from runtime.provenance import record_inputs


def define_flags():
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_string("counts", None, "counts.csv of the models, a pattern in quotes (required).")
    flags.DEFINE_integer("size", 8, "How many corruptions are in the first set.")
    flags.DEFINE_string("standard", tables.STANDARD, "The model that gains are counted from, as the table calls it.")
    flags.DEFINE_enum("measure", MEAN_ERROR, list(FIELDS), "What is averaged; CE takes a reference.")
    define_reference()
    flags.DEFINE_list("beside", [], "Corruptions with columns of their own: relative CE, or with mean_error the error.")
    flags.DEFINE_string("out", None, "Where to write; default set_means.json beside the matrix.")


def run(given):
    """Prints and writes the table; returns what is written."""
    path, paths = pathlib.Path(given.overlap), [pathlib.Path(file) for file in sorted(glob.glob(given.counts))]
    if not paths:
        raise FileNotFoundError(f"expected tables at --counts={given.counts}, found none")
    names, overlap = read_overlap(path)
    sets = dict(zip(("Set1", "Set2"), split_by_overlap(overlap, names, given.size), strict=True))
    evaluated, notes = set_errors.told_apart(paths), []
    if given.measure == MEAN_ERROR:
        values = alone = set_errors.mean_errors(evaluated)
    else:
        measured, notes = set_errors.relative_errors(evaluated, given.reference, given.mismatch)
        values, alone = measured[given.measure], measured[RELATIVE]
        set_errors.require(values, names, given.reference)
        set_errors.require(alone, given.beside, given.reference)
    means = set_means(values, sets, given.standard)
    single = set_means(alone, {name: [name] for name in given.beside}, given.standard)
    what = "error" if given.measure == MEAN_ERROR else "relative CE"
    beside = {f"{name}, {what}": {model: single[model][name].mean for model in means} for name in given.beside}
    title = {MEAN_ERROR: "Unnormalised error", CE: "Raw CE", RELATIVE: "Relative CE"}[given.measure]
    print(f"{title} in percent, mean over each set.", *notes, "", set_means_text(means, sets, beside), sep="\n")
    out = given.out or path.with_name("set_means.json")
    content = {model: {label: mean._asdict() for label, mean in row.items()} for model, row in means.items()}
    inputs = record_inputs({str(file): file for file in (path, *paths)})
    content = {"measure": given.measure, "sets": sets, "means": content, "beside": beside, "notes": notes} | inputs
    write_json(out, content)
    print(f"\nwritten to {out}")
    return content


def main(argv):
    run(command.given(argv, {"overlap": "FILE", "counts": "FILES"}))


if __name__ == "__main__":
    define_flags()
    command.run(main)
