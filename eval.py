"""Evaluates trained models under corruptions.

    python eval.py --workdir=runs/aug_fog --config.eval.corruptions="('imagenet_c',)" --config.eval.severity=levels

The workdir is one of train.py or overlap.py; only the `eval` settings of the config are used (and `ranges`, calibrated
severity ranges, and where images are: `dataset.data_dir` and `dataset.placement`), what a model is comes from its
workdir. Writes counts.csv and scores.csv (accuracy, R and their standard errors), and on ImageNet errors.csv with CE,
mCE and relative CE. What was evaluated before is not evaluated again.

    python eval.py --workdir=runs/aug_fog --config.eval.stored=PATH/TO/CIFAR-10-C

evaluates on a stored corrupted dataset instead: a folder in the CIFAR-10-C or ImageNet-C layout, or a tfds name such as
cifar10_corrupted; results go to WORKDIR/stored/NAME.

    python eval.py --config=configs/imagenet.py:resnet50 --config.model.checkpoint=resnet50.safetensors \\
        --config.dataset.data_dir=IMAGENET --workdir=runs/imagenet_resnet50

first imports torchvision's weights into the workdir (`models.torchvision`); calibrate.py and msd.py do the same. Any
other classifier is evaluated by the function `evaluate`: `from eval import evaluate`.

    python eval.py --workdir=runs/aug_fog --config.eval.adapt=test

gives the network, for each condition, the BatchNorm statistics of its own corrupted test images, without labels
(S. Schneider et al., 2020, with the pseudo-count config.eval.pseudo_count; batches of 500). Such a model has seen the
test's images: its rows are marked MODEL+bn=test and are not to be compared with others. adapt.py adapts to augmented
training images instead.
"""

import dataclasses
import functools

import numpy as np
from absl import app

from analysis import matrices, scores, tables
from corruptions import augment as schemes
from data import Split
from data.corrupted import open_corrupted
from data.dataset import sha256
from training import adaptation, adapter, augment, cli, distributed, evaluation, saved, study
from training import mesh as meshes
from training import workdir as workdirs
from training.answers import Answers
from training.log import log
from training.provenance import provenance

_ADAPT_BATCH = 500  # test images whose BatchNorm statistics are taken together


def run(config, workdir):
    """Evaluates every finished model of `workdir` under config.eval.

    Returns:
      List of `analysis.tables.Count`; of many processes only in the first, None in the others.
    """
    stored = (
        open_corrupted(config.eval.stored, data_dir=config.dataset.data_dir or None) if config.eval.stored else None
    )
    conditions = evaluation.conditions(() if stored else config.eval.corruptions, config.eval.severity)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with saved.open_workdir(workdir, config) as own:
        own.eval = config.eval
        own.ranges = config.ranges
        for name, options in config.train.corruption_options.items():
            own.train.corruption_options[name] = {**own.train.corruption_options.get(name, {}), **options}
        dataset, _, test_split = study.load_data(own, mesh, placed=("test",))
        models = saved.read_models(workdir, dataset.num_classes, test_split.images.shape[1], mesh)
        evaluation.warn_of_tables(config.eval.corruptions, dataset.image_shape)
        _warn_of_coincidence(own.train, [condition.corruption for condition in conditions[1:]])
        prepare = None
        if config.eval.adapt:
            label = _adaptation_label(config.eval)
            models = {(f"{name}+{label}", seed): model for (name, seed), model in models.items()}
            prepare = functools.partial(_adapted, config.eval.pseudo_count)
        answers = study.evaluate_models(own, models, conditions, workdir, test_split, mesh, prepare)
        results = workdir
        if stored:
            results = workdir / "stored" / stored.path.name
            distributed.on_main(lambda: results.mkdir(parents=True, exist_ok=True))
            answers |= study.evaluate_stored(own, models, stored, results, mesh)
        settings = config.eval.to_dict()
        return distributed.on_main(lambda: _write(results, answers, settings, dataset.name, dataset.num_classes))


def evaluate(
    predict,
    images,
    labels,
    *,
    corruptions=("imagenet_c",),
    severity="levels",
    batch_size=100,
    dtype="float32",
    seed=0,
    index=None,
    options=None,
    num_classes=None,
    name="standard",
    workdir=None,
    progress=True,
):
    """Evaluates any classifier under corruptions: Flax, Equinox, PyTorch, ONNX, NumPy ...

        logits = jax.jit(lambda images: model(images))                                           # Flax, Equinox, JAX
        logits = lambda images: network(torch.from_dlpack(images).permute(0, 3, 1, 2) * 2 - 1).detach()       # PyTorch
        logits = lambda images: session.run(None, {"input": np.asarray(images)})[0]                             # ONNX
        counts = evaluate(logits, images, labels, corruptions=("imagenet_c/fog",), workdir="runs/mine")

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption, severity, index).

    Args:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits [batch_size, classes]: a NumPy or JAX
        array, or any that exports DLPack. Normalising the images is its business.
      images: uint8 [N, H, W, 3], N at least 1, height and width at least 16; NumPy, a memory map too.
      labels: integers [N].
      corruptions: names of corruptions and of benchmarks.
      severity: `levels`, `random`, or numbers such as "1,3,5", see `training.evaluation.conditions`.
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling not counted.
      dtype: of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      seed: of the corrupted test sets.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1.
      options: corruption -> its static options, such as calibrated ranges.
      num_classes: of the dataset; 1000 is taken for ImageNet, and errors.csv is written. None is max(labels) + 1.
      name: of the classifier in the tables. What is known of this name in the workdir is not evaluated again.
      workdir: keeps every finished condition there, so that the same call resumes, and writes counts.csv, scores.csv
        and errors.csv; None writes nothing.
      progress: show a progress bar on a terminal.

    Returns:
      List of `analysis.tables.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or what `predict` gave, is not as described.
      training.workdir.WorkdirError: the workdir is in use, or holds answers to other images.
    """
    labels = np.asarray(labels)
    index = np.arange(len(labels)) if index is None else np.asarray(index)
    adapter.check(images, labels, index, dtype, batch_size)
    tables.check_count((name, 0, tables.CLEAN, 0, 0, 1))  # a name that tables can hold
    split, key, options = Split(images, labels, index), (name, 0), options or {}
    conditions = evaluation.conditions(corruptions, severity)
    settings = {"seed": seed, "batch_size": batch_size, "dtype": dtype, "progress": progress, "options": options}
    if workdir is None:
        return _rows(adapter.evaluate(predict, key, split, conditions, **settings))
    shown = {what: sha256(array) for what, array in (("images", images), ("labels", labels), ("index", index))}
    with workdirs.open_workdir(workdir, {"shown": shown, "seed": seed, "options": options}) as path:
        kept = Answers(path, len(split), {"seed": seed, "options": options})
        answers = adapter.evaluate(predict, key, split, conditions, **settings, answers=kept)
        num_classes = num_classes or int(labels.max()) + 1
        record = {"corruptions": list(corruptions), "severity": severity, "seed": seed}
        _write(path, answers, record, f"{len(split)} images", num_classes)
    return _rows(answers)


def _adaptation_label(wanted):
    """What marks a model adapted to test images: `bn=test`, or `bn=test:N` with a pseudo-count N."""
    if wanted.adapt != "test" or wanted.stored:
        raise ValueError(
            "expected config.eval.adapt '' or 'test', and no config.eval.stored with it, found "
            f"{wanted.adapt!r} and {wanted.stored!r}"
        )
    return "bn=test" + (f":{wanted.pseudo_count:g}" if wanted.pseudo_count else "")


def _adapted(pseudo_count, model, shown):
    graphdef, state = model
    pieces = dataclasses.replace(shown, batch_size=_ADAPT_BATCH)  # whole batches, whatever those of evaluation
    batches = (
        images[start : start + _ADAPT_BATCH] for images in pieces for start in range(0, len(images), _ADAPT_BATCH)
    )
    return graphdef, adaptation.adapt(graphdef, state, batches, pseudo_count)[0]


def _warn_of_coincidence(recipe, names):
    """Says which corruptions the models have met in training, as operations of their augmentation scheme."""
    if not recipe.get("scheme"):
        return
    try:
        scheme = augment.scheme_of(recipe)
    except (ValueError, FileNotFoundError) as error:  # stored transforms that are gone by now
        log.warning("Whether %s holds some of the corruptions cannot be told: %s", recipe.scheme, error)
        return
    for operation, corruption in schemes.coinciding(scheme, names):
        log.warning(
            "%s is close to the operation %s of %s, which these models were trained with.",
            corruption,
            operation,
            scheme.name,
        )


def _write(path, answers, settings, source, num_classes):
    """Adds the answers to counts.csv, derives the other tables; returns all counts."""
    record = provenance()
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record})
    table = path / "counts.csv"
    counts = {row.key: row for row in tables.read_counts(table)} if table.exists() else {}
    for row in _rows(answers):
        counts[row.key] = row
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    tables.write_counts(table, counts.values(), comment)
    matrices.write_scores(path / "scores.csv", counts.values(), comment)
    if num_classes == 1000:  # AlexNet's errors, the normaliser, belong to ImageNet
        matrices.write_errors(path / "errors.csv", counts.values(), comment=comment)
    return list(counts.values())


def _rows(answers):
    return list(map(tables.check_count, study.counts(answers)))


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
            # All severities show the same images: their errors are taken to go together.
            error = np.mean([scores.standard_error(row.correct, row.total) for row in rows])
            print(f"  {name:34s} accuracy {100 * accuracy:6.2f} % +- {100 * error:.2f}   R {accuracy / clean:.3f}")


def main(argv):
    with cli.errors():
        config, workdir = cli.read_flags(argv)
        study.enable_compilation_cache()
        counts = run(config, workdir)
        if distributed.is_main():
            print_scores(counts)
    log.info("Results are in %s.", workdir)


if __name__ == "__main__":
    cli.define_flags(hosts=True)
    app.run(main)
