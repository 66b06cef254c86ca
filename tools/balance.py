"""Models each trained with one corruption of a benchmark, on all of it: the benchmark's balance.

    python -m tools.balance --workdir=runs/c_noc_resnet18 --benchmarks=imagenet_c,imagenet_noc \\
        --reference=alexnet --mismatch=label [--measure=relative_CE] [--out=FILE]

Reads a workdir of overlap.py that holds the standard model and one for each corruption of the
benchmarks, and that eval.py has evaluated on them. Prints for each benchmark the models' errors
(Tables 7 and 8 of the paper on ImageNet-NOC), then the spread of their means (Table 2); writes them
to FILE (default: balance.json in the workdir). Numbers by a reference of other conditions are marked
with a dagger.
"""

from runtime import command  # isort: skip

import pathlib

from absl import flags

import corruptions
from analysis.comparison.balance_table import balance_table, spread_text, table_text
from analysis.errors import joint
from analysis.errors.choice import choose
from analysis.errors.flags import define_reference
from analysis.errors.scores import FIELDS, MEAN_ERROR, RELATIVE
from runtime.files import write_json
from runtime.provenance import record_inputs


def define_flags():
    flags.DEFINE_string("workdir", None, "Evaluated workdir of overlap.py (required).")
    flags.DEFINE_list("benchmarks", ["imagenet_c", "imagenet_noc"], "Benchmarks, in the order of the table.")
    flags.DEFINE_enum("measure", RELATIVE, list(FIELDS), "What the table holds; CE takes a reference.")
    define_reference()
    flags.DEFINE_string("out", None, "Where to write; default balance.json in the workdir.")


def run(given):
    """Prints and writes the tables; returns them."""
    folder = pathlib.Path(given.workdir)
    evaluated = joint.read(folder, folder.name)  # first: it may import a benchmark
    if unknown := [name for name in given.benchmarks if name not in corruptions.benchmarks()]:
        known = ", ".join(corruptions.benchmarks())
        raise ValueError(f"expected --benchmarks among {known}, found {', '.join(unknown)}")
    choice = choose(given.reference, given.mismatch, evaluated.conditions)
    tables = [balance_table(evaluated, choice, name, given.measure) for name in given.benchmarks]
    notes = [f"† {sentence}" for sentence in choice.sentences()] if given.measure != MEAN_ERROR else []
    print("\n\n".join([*map(table_text, tables), spread_text(tables), *notes]))
    out = pathlib.Path(given.out or folder / "balance.json")
    content = [
        table._asdict() | {"rows": [row._asdict() for row in table.rows], "spread": table.spread._asdict()}
        for table in tables
    ]
    write_json(out, {"tables": content, "notes": notes} | record_inputs({"counts.csv": folder / "counts.csv"}))
    print(f"\nwritten to {out}")
    return tables


def main(argv):
    run(command.given(argv, {"workdir": "WORKDIR"}))


if __name__ == "__main__":
    define_flags()
    command.run(main)
