"""Does cheap feature distance predict expensive overlap? An experiment, for corruptions with a measured overlap.

    python msd.py --config=configs/msd.py:bridge --workdir=runs/noc --config.msd.schemes="('noc_candidates',)" \\
        --config.msd.corruptions="('noc_candidates',)"
    python bridge.py --overlap=runs/noc/overlap.csv --msd=runs/noc/msd

Prints, for three distances between corruptions (of their centres in feature space, the minimal sample distance, and the
angle between the directions in which they move the clean centre), the rank correlation of nearness with overlap, and
the benchmark that Algorithm 1 would have chosen from overlaps predicted from distance alone, beside the one from
measured overlaps. Writes bridge.json beside msd.csv. For its limits see analysis/bridge.py.
"""

import json
import pathlib

from absl import app, flags

from analysis import bridge, command, msd_files, overlap_files
from analysis.files import write_atomically
from analysis.tables import CLEAN


def define_flags():
    """The flags of the script."""
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_string("msd", None, "Folder of msd.py's results for the same corruptions (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_integer("resamples", 1000, "Resamples of the corruptions behind the intervals.")


def run(overlap, msd, threshold, resamples=1000):
    """Prints and writes; returns the content of bridge.json."""
    names, matrix = overlap_files.read_overlap(overlap)
    beside = overlap.with_name("overlap_long.csv")
    unclipped = (
        overlap_files.unclipped_matrix(overlap_files.read_overlap_long(beside), names) if beside.is_file() else matrix
    )
    centres = msd_files.read_centres(msd / "features.npz")
    means = msd_files.mean_distances(msd_files.read_msd(msd / "msd.csv"))
    distances = {
        "centre distance": bridge.centre_distances(centres, names),
        "minimal sample distance": bridge.msd_distances(means, names),
    }
    if (CLEAN, 0) in centres:
        distances["direction"] = bridge.direction_distances(centres, names)
    else:
        print("no clean features: results of an older msd.py; its command given again adds them, and directions here")
    result = {"threshold": threshold, "corruptions": list(names)}
    for label, distance in distances.items():
        agreed = bridge.rank_agreement(unclipped, distance, names, resamples=resamples)
        low, high = agreed.spearman_interval
        compared = bridge.compare_selections(matrix, bridge.predicted_overlap(matrix, distance), names, threshold)
        print(
            f"\n{label}: Spearman of nearness and overlap {agreed.spearman:.2f} (95 % interval {low:.2f} to {high:.2f}, "
            f"{agreed.pairs} pairs)"
        )
        print(f"  from the prediction: {', '.join(compared.benchmarks.first)}")
        print(f"  from measurements:   {', '.join(compared.benchmarks.second)}")
        print(
            f"  mean overlap of the predicted benchmark {compared.mean_overlap:.3f} (predicted "
            f"{compared.predicted_overlap:.3f}; measured best {compared.best_overlap:.3f}; random sets of its size "
            f"{compared.random_mean:.3f} +- {compared.random_std:.3f}, of which {100 * compared.random_better:.1f} % are as "
            f"good); {compared.violations} pairs above the threshold, largest {compared.largest_overlap:.2f}"
        )
        result[label] = {
            "spearman": agreed.spearman,
            "spearman_interval": agreed.spearman_interval,
            "pairs": agreed.pairs,
            "benchmarks": compared.benchmarks._asdict(),
            **{key: value for key, value in compared._asdict().items() if key != "benchmarks"},
        }
    write_atomically(msd / "bridge.json", json.dumps(result, indent=2) + "\n")
    print(f"\nwritten to {msd / 'bridge.json'}")
    return result


def main(argv):
    given = command.given(argv, {"overlap": "FILE", "msd": "FOLDER"})
    with command.errors():
        run(pathlib.Path(given.overlap), pathlib.Path(given.msd), given.threshold, given.resamples)


if __name__ == "__main__":
    define_flags()
    app.run(main)
