"""Means over the corruptions that overlap most, and over the rest: where does a model gain?

    python -m tools.set_means --overlap=runs/overlap/overlap.csv --counts="runs/*/counts.csv" --size=8 --out=FILE

Cuts the corruptions of a measured matrix into the `size` of largest mean overlap (Set1) and the
rest (Set2), as Table 1 of the paper on the overlapping score does. Prints, for every model in the
tables, the mean error over each set (unnormalised, over severities and seeds) and its gain over the
standard model; writes them to FILE (default: set_means.json beside the matrix).
"""

from runtime import command  # isort: skip

import glob
import pathlib

from absl import flags

from analysis import derived, tables
from analysis.comparison.set_means import set_means, set_means_text, split_by_overlap, unnormalised_errors
from analysis.overlap.files import read_overlap
from runtime.files import write_json
from runtime.provenance import record_inputs


def define_flags():
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_string("counts", None, "counts.csv of the models, a pattern in quotes (required).")
    flags.DEFINE_integer("size", 8, "How many corruptions are in the first set.")
    flags.DEFINE_string("standard", tables.STANDARD, "The model that gains are counted from.")
    flags.DEFINE_string("out", None, "Where to write; default set_means.json beside the matrix.")


def main(argv):
    given = command.given(argv, {"overlap": "FILE", "counts": "FILES"})
    path, paths = pathlib.Path(given.overlap), sorted(glob.glob(given.counts))
    if not paths:
        raise FileNotFoundError(f"expected tables at --counts={given.counts}, found none")
    names, overlap = read_overlap(path)
    sets = dict(zip(("Set1", "Set2"), split_by_overlap(overlap, names, given.size), strict=True))
    counts = [count for table in paths for count in derived.read_counts(table)]
    means = set_means(unnormalised_errors(counts), sets, given.standard)
    print(set_means_text(means, sets))
    out = given.out or path.with_name("set_means.json")
    content = {model: {label: mean._asdict() for label, mean in row.items()} for model, row in means.items()}
    inputs = record_inputs({str(file): pathlib.Path(file) for file in (path, *paths)})
    write_json(out, {"sets": sets, "means": content} | inputs)
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    define_flags()
    command.run(main)
