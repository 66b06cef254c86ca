"""Joins errors of one network and features of another into a scan for tools.select_cbar.

Train two networks M and Phi with different seeds, then

    python eval.py --workdir=runs/m --config.eval.severity=levels \\
        --config.eval.corruptions="('cbar_candidates','imagenet_c')"
    python -m tools.msd --config=configs/msd.py --workdir=runs/phi --config.msd.schemes="('standard',)" \\
        --config.msd.corruptions="('cbar_candidates','imagenet_c')"
    python -m tools.join_scan --errors=runs/m/counts.csv --features=runs/phi/msd/features.npz --out=runs/scan0.csv
    python -m tools.select_cbar --scan="runs/scan*.csv" --target=26.9

Candidates are the 30 of C-bar at their ten levels, references the 15 of ImageNet-C at five. The
mean error of M over the references, the usual --target, is printed.
"""

from runtime import command  # isort: skip

from absl import flags

from analysis import derived
from analysis.cbar import scans
from analysis.cbar.join import join
from analysis.distances.files import read_centres


def define_flags():
    flags.DEFINE_string("errors", None, "counts.csv of one network M (required).")
    flags.DEFINE_string("features", None, "features.npz of another, Phi (required).")
    flags.DEFINE_string("model", "standard", "Which model of counts.csv: what it was trained with.")
    flags.DEFINE_string("out", None, "Table to write, *.csv; the features go beside it (required).")


def main(argv):
    given = command.given(argv, {"errors": "FILE", "features": "FILE", "out": "FILE"})
    counts = derived.read_counts(given.errors)
    scan = join(counts, read_centres(given.features), given.model)
    scans.write_scan(given.out, scan, f"errors of {given.errors}, features of {given.features}")
    print(f"mean error over the references {scan.reference_errors.mean():.3f} %; written to {given.out}")


if __name__ == "__main__":
    define_flags()
    command.run(main)
