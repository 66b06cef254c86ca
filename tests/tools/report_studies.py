"""Workdirs of overlap studies for the tests of tools.report: answers and records, without any training."""

import json
import pathlib

import numpy as np
import pandas as pd

from analysis import answers
from tests.analysis.made_up import counted, write_answers

SMOKE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "results" / "overlap_cifar10_smoke"
REVISION = "0123456789abcdef0123456789abcdef01234567"
CONFIG = {
    "seed": 0,
    "dataset": {"name": "shapes", "image_size": 32, "data_dir": ""},
    "model": {"name": "small_resnet", "dtype": ""},
    "train": {
        "epochs": 7, "batch_size": 64, "learning_rate": 0.1, "schedule": "cosine", "warmup_epochs": 1, "momentum": 0.9,
        "weight_decay": 0.0001, "corrupted_fraction": 0.5, "flip": True, "init_from": "", "corruption_options": {},
    },
    "study": {"threshold": 0.1, "seeds": [0]},
}  # fmt: skip
PROVENANCE = {
    "git_revision": REVISION,
    "device": "2 x cpu (cpu)",
    "machine": "a machine",
    "command": "overlap.py --config=configs/overlap_shapes.py",
    "versions": {"jax": "0.10.2", "python": "3.11.7"},
}
RANGE = {  # of a corruption in ranges.json
    "range": [0.1, 0.75], "unit": "fraction", "robustness": [0.951, 0.502], "robustness_se": [0.004, None],
    "capped": [False, True], "monotone": True, "mean_robustness": 0.72, "mean_robustness_se": 0.01,
}  # fmt: skip


def records(workdir, seeds=(0,)):
    """config.json and provenance.json, which a workdir has besides its results."""
    config = CONFIG | {"study": CONFIG["study"] | {"seeds": list(seeds)}}
    for name, content in (("config.json", config), ("provenance.json", PROVENANCE)):
        (workdir / name).write_text(json.dumps(content))


def smoke(workdir):
    """A workdir whose answers add up to the counts in docs/results/overlap_cifar10_smoke."""
    workdir.mkdir(parents=True)
    counts = pd.read_csv(SMOKE / "counts.csv").itertuples(index=False, name=None)
    write_answers(workdir, [counted(*row[:3], 0 if row[2] == "clean" else "random", *row[4:]) for row in counts])
    records(workdir)
    return workdir


def write(workdir, names, seeds=(0,), number=800, harmed=None, weak=(), draw=1):
    """Writes a study: neighbours in `names` overlap, the last corruption harms the others.

    Images differ in difficulty, which correlates the answers of all models. Training on the corruption `harmed` makes it
    worse, on the corruptions `weak` (positions) it hardly helps. Returns the bits [seeds, 1 + n, 1 + n, number].
    """
    workdir.mkdir(parents=True)
    records(workdir, seeds)
    n = len(names)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    related = np.where(distance // 2 == 0, 1 - 0.6 * distance, 0.0)
    related[-1, :-1] = related[:-1, -1] = -0.3
    probability = np.full((n + 1, n + 1), 0.9)
    probability[0, 1:] = 0.55
    probability[1:, 1:] = 0.55 + 0.3 * related
    if harmed is not None:
        probability[1 + harmed, 1 + harmed] = 0.35
    for k in weak:
        probability[1 + k, 1 + k] = 0.62
    rng = np.random.default_rng(draw)
    limit = np.sort(rng.normal(size=100_000))[(100_000 * probability).astype(int)]
    noise = rng.normal(size=(len(seeds), n + 1, n + 1, number)) + rng.normal(size=number)
    bits = noise / np.sqrt(2) < limit[..., None]
    models, conditions = ("standard", *names), (("clean", "0"), *((name, "random") for name in names))
    for c, (corruption, severity) in enumerate(conditions):
        by_model = {(model, seed): bits[s, m, c] for m, model in enumerate(models) for s, seed in enumerate(seeds)}
        label = 0 if corruption == "clean" else severity
        answers.write(workdir / "answers", by_model, answers.Record(corruption, label, None, number, {}))
    return bits
