"""Evaluation of a study: seconds of corrupting the test set beside seconds of inference.

    python -m benchmarks.evaluation --config=configs/noc_cifar10.py:cpu --config.dataset.data_dir=DIR

Every condition is corrupted once and shown to every model (24 for 23 candidates). Prints a table in
Markdown: seconds of corruption of each condition, of one model's inference on the test set, and
what share of the whole corruption takes.
"""

from runtime import command  # isort: skip

import time

import jax
import jax.numpy as jnp

from evaluation import correctness
from evaluation.conditions import RANDOM, list_conditions
from evaluation.shown import Shown
from runtime import meshes
from runtime.provenance import provenance
from training import cli, states, study


def _seconds(work):
    """Time of the second call; the first compiles."""
    jax.block_until_ready(work())
    start = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - start


def main(argv):
    config, _ = cli.read_flags(argv)
    mesh = meshes.data_mesh(config.train.batch_size)
    dataset, _, split = study.load_data(config, mesh)
    model_config = study.model_config(config, "standard", 0)
    graphdef, params, statistics = states.build_model(model_config, dataset.num_classes, dataset.image_shape[0])
    model = states.TrainState(jnp.zeros((), jnp.int32), params, statistics, ())
    labels = jnp.asarray(split.labels)
    batch = config.eval.batch_size
    inference = _seconds(lambda: correctness.of_model((graphdef, model), split.images, labels, batch, mesh))
    shown = Shown(split, mesh, batch, config.eval.seed)
    conditions = list_conditions(config.study.corruptions, RANDOM)[1:]
    rows = [(condition.corruption, _seconds(shown.under(condition).images)) for condition in conditions]
    models = len(rows) + 1
    total = sum(seconds for _, seconds in rows)
    record = provenance()
    print(
        f"{config.model.name} on {dataset.name}, {len(split)} test images, {record['device']}, {record['git_revision'][:12]}\n"
    )
    print("| corruption | seconds for the test set | share of the condition |\n|---|---|---|")
    for name, seconds in sorted(rows, key=lambda row: -row[1]):
        print(f"| {name} | {seconds:.2f} | {100 * seconds / (seconds + models * inference):.1f} % |")
    print(
        f"\nInference of one model: {inference:.2f} s; {models} models x {models} conditions: {models * models * inference:.0f} s. "
        f"All corruptions: {total:.1f} s, {100 * total / (total + models * models * inference):.1f} % of the evaluation."
    )


if __name__ == "__main__":
    cli.define_flags("configs/noc_cifar10.py:cpu")
    command.run(main, cli.parse)
