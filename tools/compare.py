"""Compares two or more studies of the same corruptions, or two feature extractors.

    python -m tools.compare --first=runs/noc_cpu --second=runs/noc_finetuned [--threshold=0.1] [--out=FILE]

Reads overlap.csv and overlap_long.csv (and timing.json) of both workdirs. Prints how well the
matrices agree over pairs of corruptions and which benchmarks Algorithm 1 selects from each; writes
SECOND/comparison.json.

    python -m tools.compare runs/resnet18 runs/densenet121 runs/wide_resnet50_2 --out=runs/architectures

compares every two of several workdirs, and what each one selects; writes into the folder --out
comparisons.json, and the matrices side by side as matrices.png and matrices.pdf.

    python -m tools.compare --first=runs/wrn/msd --second=runs/vgg/msd

compares two feature extractors by the folders of results of tools.msd: ranks of their distances,
and how well either's correlate with error where correlations.csv has them.
"""

from runtime import command  # isort: skip

import pathlib

from absl import app, flags

from analysis import figures
from analysis.comparison.files import compare_studies
from analysis.comparison.several import compare_several, matrices_figure
from runtime.files import write_json


def define_flags():
    flags.DEFINE_string("first", None, "Workdir of a study, or a folder of tools.msd (required without WORKDIRs).")
    flags.DEFINE_string("second", None, "Another one of the same corruptions (required without WORKDIRs).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_string(
        "out", None, "Where to write; default comparison.json in the second workdir. Of several workdirs a folder."
    )


def run_several(folders, given):
    """Compares three or more workdirs; returns what comparisons.json holds."""
    content, text, studies = compare_several(folders, given.threshold)
    print(text)
    if given.out:
        out = pathlib.Path(given.out)
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "comparisons.json", content)
        pictures = figures.save(matrices_figure(studies), out / "matrices")
        print(f"\nwritten to {', '.join(map(str, [out / 'comparisons.json', *pictures]))}")
    return content


def run_two(first, second, given):
    """Compares two workdirs, or two folders of tools.msd."""
    content, text = compare_studies(first, second, given.threshold)
    print(text)
    out = given.out or second / "comparison.json"
    write_json(out, content)
    print(f"\nwritten to {out}")


def main(argv):
    folders = [pathlib.Path(path) for path in argv[1:]]
    if not folders:
        given = command.given(argv, {"first": "WORKDIR", "second": "WORKDIR"})
        run_two(pathlib.Path(given.first), pathlib.Path(given.second), given)
        return
    given = command.given(argv[:1])
    if len(folders) == 1 or given.first or given.second:
        raise app.UsageError(
            "expected two or more workdirs, or --first=WORKDIR and --second=WORKDIR, found "
            f"{', '.join(map(str, folders))} and --first={given.first} --second={given.second}"
        )
    if len(folders) == 2:
        run_two(*folders, given)
    else:
        run_several(folders, given)


if __name__ == "__main__":
    define_flags()
    command.run(main)
