"""Does cheap feature distance predict expensive overlap? An experiment, for corruptions with a measured overlap.

    python -m tools.msd --config=configs/msd.py:bridge --workdir=runs/noc --config.msd.schemes="('noc_candidates',)" \\
        --config.msd.corruptions="('noc_candidates',)"
    python -m tools.predict_overlap --overlap=runs/noc/overlap.csv --msd=runs/noc/msd

Prints, for three distances between corruptions (of their centres in feature space, the minimal sample distance, and the
angle between the directions in which they move the clean centre), the rank correlation of nearness with overlap, and
the benchmark that Algorithm 1 would have chosen from overlaps predicted from distance alone, beside the one from
measured overlaps. Writes bridge.json beside msd.csv. For its limits see analysis/comparison/prediction.py.
"""

import json
import pathlib

from absl import app, flags

from analysis.comparison import prediction
from analysis.distances.files import mean_distances, read_centres, read_msd
from analysis.overlap.files import read_overlap, read_overlap_long, unclipped_matrix
from analysis.tables import CLEAN
from runtime import command
from runtime.files import write_atomically


def define_flags():
    """The flags of the script."""
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_string("msd", None, "Folder of tools.msd's results for the same corruptions (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_integer("resamples", 1000, "Resamples of the corruptions behind the intervals.")


def run(overlap, msd, threshold, resamples=1000):
    """Prints and writes; returns the content of bridge.json."""
    names, matrix = read_overlap(overlap)
    beside = overlap.with_name("overlap_long.csv")
    unclipped = unclipped_matrix(read_overlap_long(beside), names) if beside.is_file() else matrix
    centres = read_centres(msd / "features.npz")
    means = mean_distances(read_msd(msd / "msd.csv"))
    distances = {
        "centre distance": prediction.centre_distances(centres, names),
        "minimal sample distance": prediction.msd_distances(means, names),
    }
    if (CLEAN, 0) in centres:
        distances["direction"] = prediction.direction_distances(centres, names)
    else:
        print(
            "no clean features: results of an older tools.msd; its command given again adds them, and directions here"
        )
    result = {"threshold": threshold, "corruptions": list(names)}
    for label, distance in distances.items():
        agreed = prediction.rank_agreement(unclipped, distance, names, resamples=resamples)
        low, high = agreed.spearman_interval
        compared = prediction.compare_selections(
            matrix, prediction.predicted_overlap(matrix, distance), names, threshold
        )
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
