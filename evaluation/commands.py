"""The two functions of eval.py: `run` evaluates the models of a workdir, `evaluate` any classifier."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis import answers, frames
from analysis.answers import PLAIN, Answered
from analysis.errors.reference import PREPROCESSING
from analysis.frames import Count
from corruptions import enhance as enhancements
from corruptions.core.registry import qualified_options
from corruptions.files import digest_of
from corruptions.scoring import classifier, reuse
from corruptions.scoring.conditions import Severities, list_conditions
from data import Split, hosts
from data.corrupted import open_corrupted
from evaluation import adaptation, natural, superclasses, temperature, trained_models
from evaluation.evaluate import Evaluation, marked, networks, warn_of_coincidence, warn_of_tables
from evaluation.results import Basis, asked_for, conditions_of, count_answers, write_tables
from evaluation.shown import IMAGENET, Shown, ShownStored, name_images, name_stored
from runtime import meshes, workdirs
from runtime.artifacts import digest
from runtime.settings import WorkdirError
from runtime.workdirs import Workdir
from training import study


def run(config: ConfigDict, workdir: pathlib.Path) -> list[Count] | None:
    """Evaluates every finished model of `workdir` under config.eval.

    Everything is opened and checked before the first test image is shown: models, datasets, earlier answers, the reference.

    Returns:
      The rows of counts.csv in process 0, None in others.
    """
    superclasses.check(config.eval)
    stored = None
    if config.eval.stored:
        where = config.dataset.data_dir or None
        stored = open_corrupted(config.eval.stored, data_dir=where, verify=config.eval.verify)
        hosts.check_files(stored.path.name, stored.path, stored.files())
    conditions = list_conditions(() if stored else config.eval.corruptions, config.eval.severity)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.apply_eval(trained, config)
        dataset, _, test_split = study.load_data(trained, mesh, placed=("test",), listed=config.eval.images)
        settings = asked_for(config, trained)
        about = name_stored(dataset, stored, settings["imports"]) if stored else {}
        warn_of_tables(config.eval.corruptions, dataset.image_shape)
        warn_of_coincidence(trained.train, [condition.corruption for condition in conditions[1:]])
        models = trained_models.read_models(workdir, dataset, mesh)
        prepare, enhance = None, config.eval.enhance
        if config.eval.adapt:
            models = marked(models, adaptation.label(config.eval))
            prepare = functools.partial(adaptation.adapt_to_test, config.eval.pseudo_count)
        if enhance:
            models = marked(models, enhancements.label(enhance))
        held_out = temperature.held_out(trained, mesh)
        models, temperatures = temperature.asked_for(models, trained, Workdir(workdir), held_out, prepare)
        ask, results = networks(prepare, enhance, temperatures), Workdir(workdir)
        shown = Shown.of(trained, test_split, mesh, dataset)
        if stored:
            results = Workdir(workdir / "stored" / stored.path.name)
        if reduce := config.eval.superclasses:
            shown = superclasses.shown_of(shown, dataset, reduce)
            results = Workdir(workdir / "superclasses" / reduce)
        open_one = functools.partial(Evaluation, models, temperatures=temperatures)
        evaluations = [open_one(shown, conditions, results, ask)]
        evaluations += natural.open_evaluations(open_one, trained, dataset, shown, results, ask)
        if stored:
            shown = ShownStored(stored, mesh, config.eval.batch_size, about)
            conditions = shown.conditions
            evaluations.append(open_one(shown, conditions, results, ask))
        basis = results.on_main(Basis.before, config, shown, conditions, results)
        for evaluation in evaluations:
            evaluation.run()
        return results.on_main(write_tables, results, settings, dataset.name, basis, first=conditions)


def evaluate(
    predict: classifier.Predict,
    images: np.ndarray,
    labels: Sequence[int] | np.ndarray,
    *,
    corruptions: str | Sequence[str] = ("imagenet_c",),
    severity: Severities = "levels",
    batch_size: int = 100,
    dtype: str = "float32",
    outputs: str = "logits",
    seed: int = 0,
    index: Sequence[int] | np.ndarray | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    num_classes: int | None = None,
    dataset: str = "",
    reference: str | os.PathLike = "",
    reference_mismatch: str = "refuse",
    name: str = "standard",
    network: str | None = None,
    workdir: str | os.PathLike | None = None,
    progress: bool = True,
) -> list[frames.Count]:
    """Evaluates any classifier under corruptions as `corruptions.evaluate` does, and keeps and compares its errors as
    eval.py does for trained models.

        counts = evaluate(logits, images, labels, corruptions=("imagenet_c/fog",), workdir="runs/mine")

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption, severity, index).

    Args:
      predict, images, labels, corruptions, severity, batch_size, dtype, outputs, seed, index, options: see
        `corruptions.evaluate`.
      num_classes: classes of the dataset; None is max(labels) + 1.
      dataset: name of the dataset, so that its errors are compared with errors on the same dataset. "imagenet" at 224
        pixels means a shorter side resized to 256 and the centre cropped, for which AlexNet's published errors hold.
        Errors on a dataset without a name are compared with nothing.
      reference: model whose errors CE and mCE divide by: `alexnet`, a file, an evaluated workdir, or "" for AlexNet
        where its errors hold.
      reference_mismatch: `refuse` or `label`, when a reference holds for other conditions.
      name: name of the classifier in the tables. Answers under this name in the workdir are not evaluated again; `predict`
        is asked about 32 images of them, and another classifier is refused.
      network: what identifies the classifier, such as a digest of its weights, in place of asking it: for one that draws at
        random or adapts to its batches. Answers of another one under `name` are evaluated again.
      workdir: keeps every finished condition there, so that the same call resumes, and writes counts.csv, scores.csv,
        errors.csv and errors_summary.csv; None writes nothing.
      progress: show a progress bar on a terminal, and print the errors.

    Returns:
      List of `analysis.frames.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or the answer of `predict`, is not as described.
      runtime.settings.SettingsError: a named reference holds for other conditions.
      runtime.workdirs.WorkdirError: the workdir is in use, or holds answers to other images, or those of another classifier
        under this name.
    """
    labels, index = classifier.checked(images, labels, index, seed, dtype, batch_size, outputs)
    frames.check_model_name(name)
    asked = [corruptions] if isinstance(corruptions, str) else list(corruptions)
    own = qualified_options(options or {})
    conditions = list_conditions(asked, severity, own)
    shown = Shown(Split(images, labels, index), meshes.data_mesh(batch_size), batch_size, seed, own)

    if workdir is None:
        found = {c: {(name, 0): _answered(predict, shown.under(c), dtype, outputs).correct} for c in conditions}
        return count_answers(found)
    hashes = {what: digest_of(array) for what, array in (("images", images), ("labels", labels), ("index", index))}
    shape = images.shape[1:]
    published = (dataset, *shape[:2]) == (IMAGENET, 224, 224)
    words = PREPROCESSING if published else "none" if dataset else ""
    about = name_images(dataset, num_classes or int(labels.max()) + 1, shape, words)
    shown = dataclasses.replace(shown, digests=hashes, about=about)

    def ask(models, under):
        return {key: _answered(model, under, dtype, outputs) for key, model in models.items()}

    with workdirs.open_workdir(workdir, {"shown": hashes}) as results:
        known = {} if network is None else {(name, 0): digest(network)}
        evaluation = Evaluation({(name, 0): predict}, shown, conditions, results, ask, model_digests=known)
        again = functools.partial(_answered, predict, dtype=dtype, outputs=outputs)
        _refuse_another(results, shown, conditions, name, again, known)
        basis = Basis.of(conditions_of(shown, conditions, results), str(reference), reference_mismatch)
        counts = count_answers(evaluation.run(progress))
        settings = {"corruptions": asked, "severity": severity, "seed": seed}
        write_tables(results, settings, f"{len(shown)} images", basis, first=conditions, printed=progress)
    return counts


def _refuse_another(results, shown, conditions, name, answered, known):
    """Asks a classifier again about some images whose answers a workdir holds; WorkdirError where it is another one."""
    for under in map(shown.under, conditions):
        record = under.record
        path = results / answers.FOLDER / f"{record.stem}.npz"
        by_model, before = answers.read_answered(path) if path.exists() else ({}, record)
        if (name, 0) in by_model and not (known and before.models.get((name, 0))):
            rows = np.unique(np.linspace(0, len(shown) - 1, reuse.ASKED).astype(int))
            of_rows = Split(shown.split.images[rows], shown.split.labels[rows], shown.split.index[rows])
            stored, again = by_model[name, 0], answered(under.showing(of_rows))
            confidence = stored.confidence[PLAIN][rows] if PLAIN in stored.confidence else None
            found = reuse.differing(stored.correct[rows], confidence, again.correct, again.confidence[PLAIN])
            if wrong := reuse.in_words(found):
                raise WorkdirError(
                    f"{path} holds answers of another classifier under the name {name!r}: {wrong}; give the one that was "
                    "evaluated, another name, or, where predict draws or adapts, network='WHAT IDENTIFIES IT'"
                )
            return


def _answered(predict, shown, dtype, outputs):
    """Asks a classifier about all images under a condition."""
    split = shown.split

    def show(rows):
        return shown.showing(Split(split.images[rows], split.labels[rows], split.index[rows])).images()

    correct, confidence, _ = classifier.answer(predict, show, split.labels, shown.batch_size, dtype, outputs)
    return Answered(correct, {PLAIN: confidence})
