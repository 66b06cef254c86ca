"""Evaluates trained models under corruptions.

    python eval.py --workdir=runs/aug_fog --config.eval.corruptions="('imagenet_c',)" --config.eval.severity=levels

The workdir is one of train.py or overlap.py; only the `eval` settings of the config are used (and `ranges`, calibrated
severity ranges), what a model is comes from its workdir. Writes counts.csv and scores.csv (accuracy, R and their standard
errors), and on ImageNet errors.csv with CE, mCE and relative CE. What was evaluated before is not evaluated again.

    python eval.py --workdir=runs/aug_fog --config.eval.stored=PATH/TO/CIFAR-10-C

evaluates on a stored corrupted dataset instead: a folder in the CIFAR-10-C or ImageNet-C layout, or a tfds name such as
cifar10_corrupted; results go to WORKDIR/stored/NAME.
"""

import numpy as np
from absl import app

from analysis import matrices, tables
from corruptions import augment as schemes
from data.corrupted import open_corrupted
from training import cli, evaluation, study
from training import mesh as meshes
from training import workdir as workdirs
from training.log import log
from training.provenance import provenance


def run(config, workdir):
    """Evaluates every finished model of `workdir` under config.eval; returns the list of `analysis.tables.Count`."""
    stored = (
        open_corrupted(config.eval.stored, data_dir=config.dataset.data_dir or None) if config.eval.stored else None
    )
    conditions = evaluation.conditions(() if stored else config.eval.corruptions, config.eval.severity)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with study.trained_workdir(workdir, config) as own:
        own.eval = config.eval
        own.ranges = config.ranges
        for name, options in config.train.corruption_options.items():
            stored = own.train.corruption_options.get(name, {})
            own.train.corruption_options[name] = {**stored, **options}
        dataset, _, test_split = study.load_data(own, mesh)
        models = study.read_models(workdir, dataset.num_classes, test_split.images.shape[1], mesh)
        evaluation.warn_of_tables(config.eval.corruptions, dataset.image_shape)
        _warn_of_coincidence(own.train.get("scheme", ""), [condition.corruption for condition in conditions[1:]])
        answers = study.evaluate_models(own, models, conditions, workdir, test_split, mesh)
        results = workdir
        if stored:
            results = workdir / "stored" / stored.path.name
            results.mkdir(parents=True, exist_ok=True)
            answers |= study.evaluate_stored(own, models, stored, results, mesh)
        return _write(config, results, answers, dataset)


def _warn_of_coincidence(scheme, names):
    """Says which corruptions the models have met in training, as operations of their augmentation scheme."""
    for operation, corruption in schemes.coinciding(scheme, names) if scheme else ():
        log.warning(
            "%s is close to the operation %s of %s, which these models were trained with.",
            corruption,
            operation,
            scheme,
        )


def _write(config, path, answers, dataset):
    """Adds the answers to counts.csv, derives the other tables; returns all counts."""
    record = provenance()
    workdirs.write_json(path / "evaluation.json", {"eval": config.eval.to_dict(), "provenance": record})
    table = path / "counts.csv"
    counts = {row.key: row for row in tables.read_counts(table)} if table.exists() else {}
    for row in map(tables.check_count, study.counts(answers)):
        counts[row.key] = row
    comment = f"{dataset.name}, {record['device']}, revision {record['git_revision']}"
    tables.write_counts(table, counts.values(), comment)
    matrices.write_scores(path / "scores.csv", counts.values(), comment)
    if dataset.num_classes == 1000:  # AlexNet's errors, the normaliser, belong to ImageNet
        matrices.write_errors(path / "errors.csv", counts.values(), comment=comment)
    return list(counts.values())


def print_scores(counts):
    """Prints accuracy and R of every model, averaged over severities, as a table."""
    models = sorted({(count.model, count.seed) for count in counts})
    names = list(dict.fromkeys(count.corruption for count in counts))
    for model, seed in models:
        print(f"\n{model}, seed {seed}")
        of = {name: [c for c in counts if (c.model, c.seed, c.corruption) == (model, seed, name)] for name in names}
        clean = of[tables.CLEAN][0].correct / of[tables.CLEAN][0].total
        for name, rows in of.items():
            accuracy = np.mean([row.correct / row.total for row in rows])
            error = np.sqrt(accuracy * (1 - accuracy) / (rows[0].total * len(rows)))
            print(f"  {name:34s} accuracy {100 * accuracy:6.2f} % +- {100 * error:.2f}   R {accuracy / clean:.3f}")


def main(argv):
    with cli.errors():
        config, workdir = cli.read_flags(argv)
        study.enable_compilation_cache()
        print_scores(run(config, workdir))
    log.info("Results are in %s.", workdir)


if __name__ == "__main__":
    cli.define_flags()
    app.run(main)
