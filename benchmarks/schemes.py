"""Mean error on CIFAR-10-C of models trained with augmentation schemes, beside the published table.

    for scheme in baseline autoaugment_cifar patch_gaussian augmix; do
        python train.py --config=configs/scheme.py:$scheme --workdir=runs/schemes/$scheme
        python eval.py  --config=configs/scheme.py:$scheme --workdir=runs/schemes/$scheme
    done
    python -m benchmarks.schemes runs/schemes/*

Prints Markdown: clean error and mean error over 15 corruptions x 5 severities in percent, with
binomial standard errors over the test images (all severities show the same images, so the mean's is
bounded by that of one condition).
"""

import argparse
import json
import pathlib

import numpy as np

from analysis import derived, tables
from corruptions import names

# Mintun, Kirillov & Xie (2021), supplement, Table 2: WRN-40-2, 100 epochs, 10 runs; AugMix with the
# JSD loss.
PUBLISHED = {"baseline": 27.0, "autoaugment_cifar": 19.4, "patch_gaussian": 17.0, "augmix+jsd": 11.1}


def row(workdir):
    """Reads (scheme, clean error, mean corruption error, standard error, config) of a workdir."""
    config = json.loads((workdir / "config.json").read_text())
    scheme = (config["train"]["scheme"] or "baseline") + ("+jsd" if config["train"]["jsd_weight"] else "")
    counts = derived.read_counts(workdir / "counts.csv")
    error = {(c.corruption, c.severity): 1 - c.correct / c.total for c in counts}
    conditions = [(name, level) for name in names("imagenet_c") for level in range(1, 6)]
    missing = [condition for condition in conditions if condition not in error]
    if missing:
        raise ValueError(
            f"{workdir}: expected 15 corruptions at 5 levels in counts.csv, {len(missing)} missing, such as {missing[0]}"
        )
    mean = float(np.mean([error[condition] for condition in conditions]))
    return scheme, error[tables.CLEAN, 0], mean, (mean * (1 - mean) / counts[0].total) ** 0.5, config


def main(workdirs):
    rows = sorted(map(row, workdirs), key=lambda found: found[2])
    config = rows[0][4]
    print(
        f"{config['model']['name']} {dict(config['model'])}, {config['train']['epochs']} epochs, seed {config['seed']}\n"
    )
    print(
        "| scheme | clean error % | mean error on 15 x 5 conditions % | published (WRN-40-2, 100 epochs) |\n|---|---|---|---|"
    )
    for scheme, clean, mean, se, _ in rows:
        print(f"| {scheme} | {100 * clean:.1f} | {100 * mean:.1f} +- {100 * se:.1f} | {PUBLISHED.get(scheme, '')} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workdirs", nargs="+", type=pathlib.Path, help="of train.py, after eval.py at all levels")
    main(parser.parse_args().workdirs)
