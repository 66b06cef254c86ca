"""Tests whether cheap feature distances predict expensive, measured overlaps.

    python -m tools.msd --config=configs/msd.py:bridge --workdir=runs/noc --config.msd.schemes="('noc_candidates',)" \\
        --config.msd.corruptions="('noc_candidates',)"
    python -m tools.predict_overlap --overlap=runs/noc/overlap.csv --msd=runs/noc/msd

Prints, for three distances between corruptions (of their centres in feature space, the minimal
sample distance, and the angle between the directions in which they move the clean centre), the rank
correlation of nearness with overlap, and the benchmark that Algorithm 1 would have chosen from
overlaps predicted from distance alone, beside the one from measured overlaps. Writes bridge.json
beside msd.csv. For its limits see analysis/comparison/prediction.py.
"""

from runtime import command  # isort: skip

import pathlib

from absl import flags

from analysis.comparison.bridge import judge, read_distances
from analysis.overlap.files import read_measured
from runtime.files import without_nan, write_json
from runtime.provenance import record_inputs


def define_flags():
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_string("msd", None, "Folder of tools.msd's results for the same corruptions (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_integer("resamples", 1000, "Resamples of the corruptions behind the intervals.")


def run(overlap, msd, threshold, resamples=1000):
    """Prints and writes; returns the content of bridge.json."""
    measured = read_measured(overlap)
    distances = read_distances(msd, measured.names)
    if "direction" not in distances:
        print(
            "no clean features: results of an older tools.msd; its command given again adds them, and directions here"
        )
    inputs = [*measured.files, msd / "features.npz", msd / "msd.csv"]
    record = record_inputs({f"{path.parent.name}/{path.name}": path for path in inputs})
    content = {"threshold": threshold, "corruptions": list(measured.names), **record}
    for label, distance in distances.items():
        content[label], text = judge(measured, label, distance, threshold, resamples)
        print(f"\n{text}")
    out = msd / "bridge.json"
    write_json(out, without_nan(content))
    print(f"\nwritten to {out}")
    return content


def main(argv):
    given = command.given(argv, {"overlap": "FILE", "msd": "FOLDER"})
    run(pathlib.Path(given.overlap), pathlib.Path(given.msd), given.threshold, given.resamples)


if __name__ == "__main__":
    define_flags()
    command.run(main)
