"""Compares two studies of the same corruptions, or two feature extractors.

    python -m tools.compare --first=runs/noc_cpu --second=runs/noc_finetuned [--threshold=0.1] [--out=FILE]

Reads overlap.csv and overlap_long.csv (and timing.json) of both workdirs. Prints how well the
matrices agree over pairs of corruptions and which benchmarks Algorithm 1 selects from each; writes
SECOND/comparison.json.

    python -m tools.compare --first=runs/wrn/msd --second=runs/vgg/msd

compares two feature extractors by the folders of results of tools.msd: ranks of their distances,
and how well either's correlate with error where correlations.csv has them.
"""

from runtime import command  # isort: skip

import pathlib

from absl import flags

from analysis.comparison.files import compare_extractors, compare_studies
from runtime.files import write_json


def define_flags():
    flags.DEFINE_string("first", None, "Workdir of a study, or a folder of tools.msd (required).")
    flags.DEFINE_string("second", None, "Another one of the same corruptions (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_string("out", None, "Where to write; default comparison.json in the second workdir.")


def main(argv):
    given = command.given(argv, {"first": "WORKDIR", "second": "WORKDIR"})
    first, second = pathlib.Path(given.first), pathlib.Path(given.second)
    if (first / "msd.csv").is_file():
        content, text = compare_extractors(first, second)
    else:
        content, text = compare_studies(first, second, given.threshold)
    print(text)
    out = given.out or second / "comparison.json"
    write_json(out, content)
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    define_flags()
    command.run(main)
