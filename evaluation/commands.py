"""The two functions of eval.py: `run` evaluates the models of a workdir, `evaluate` any classifier."""

import dataclasses
import functools
import os
import pathlib

from ml_collections import ConfigDict

from analysis import answers, frames
from analysis.answers import PLAIN, Answered
from analysis.errors.reference import PREPROCESSING
from analysis.frames import Count
from corruptions import enhance as enhancements
from corruptions.core import checks
from corruptions.files import digest_of
from corruptions.scoring import reuse
from corruptions.scoring.conditions import Conditions, list_conditions
from corruptions.scoring.predict import BYTES, Classifier
from corruptions.scoring.test_set import TestSet
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
            results.for_all(_refuse_merged, workdir / "stored", stored.path.name)
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


def _refuse_merged(folder: pathlib.Path, name: str) -> None:
    """Refuses a new folder of results that a file system without capitals takes for another one's."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if name not in names and (twins := [other for other in names if checks.folded(other) == checks.folded(name)]):
        raise ValueError(
            f"config.eval.stored: expected a dataset whose name every file system tells from {twins[0]!r}, which {folder} "
            f"holds results of, found {name!r}; rename its folder"
        )


@dataclasses.dataclass(frozen=True)
class Names:
    """Names of a classifier and of its test set in tables.

    Attributes:
      classifier: the name of its rows. Per-image results under this name in the workdir are not computed again; `predict`
        is asked about 32 images of them, and another classifier is refused.
      dataset: so that its errors are compared with errors on the same dataset. "imagenet" at 224 pixels means a shorter
        side resized to 256 and the centre cropped, for which AlexNet's published errors hold. Errors on a dataset without a
        name are compared with nothing.
      num_classes: classes of the dataset; None is the largest label + 1.
    """

    classifier: str = "standard"
    dataset: str = ""
    num_classes: int | None = None


@dataclasses.dataclass(frozen=True)
class Tables:
    """The tables of an evaluation.

    Attributes:
      workdir: keeps every finished condition, so that the same call resumes, and gets counts.csv, scores.csv, errors.csv
        and errors_summary.csv; None writes nothing.
      reference: model whose errors CE and mCE divide by: `alexnet`, a file, an evaluated workdir, or "" for AlexNet
        where its errors hold.
      reference_mismatch: `refuse` or `label`, when a reference holds for other conditions.
      progress: show a progress bar on a terminal, and print the errors.
    """

    workdir: str | os.PathLike | None = None
    reference: str | os.PathLike = ""
    reference_mismatch: str = "refuse"
    progress: bool = True


def evaluate(
    classifier: Classifier,
    test_set: TestSet,
    conditions: Conditions | None = None,
    *,
    names: Names = Names(),
    tables: Tables = Tables(),
) -> list[frames.Count]:
    """Evaluates any classifier under corruptions as `corruptions.evaluate` does, and keeps and compares its errors as
    eval.py does for trained models.

        fog = Conditions(("imagenet_c/fog",))
        counts = evaluate(Classifier(logits), TestSet(images, labels), fog, tables=Tables("runs/mine"))

    The corrupted images are those that eval.py shows its models: draws depend on (seed, corruption, severity, index).

    Args:
      classifier: predict, dtype, outputs, network of `corruptions.evaluate`. Results of another `network` under this name
        are computed again.
      test_set: its images, labels, index and batch_size, in memory.
      conditions: its corruptions, severity, options and seed; None is all levels of ImageNet-C.
      names: in the tables.
      tables: where they are written, and the reference of CE.

    Returns:
      List of `analysis.frames.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or what `predict` returns, is not as described.
      runtime.settings.SettingsError: a named reference holds for other conditions.
      runtime.workdirs.WorkdirError: the workdir is in use, or holds results on other images, or those of another classifier
        under this name.
    """
    if test_set.whole is None:
        raise TypeError(
            "expected images with labels, found batches; corruptions.evaluate(predict, loader) takes batches"
        )
    conditions = conditions or Conditions()
    test_set.check_filling(BYTES[classifier.dtype])
    frames.check_model_name(names.classifier)
    key, listed, mesh = (names.classifier, 0), conditions.listed, meshes.data_mesh(test_set.batch_size)
    whole = test_set.whole
    split = Split(whole.images, whole.labels, whole.index)
    shown = Shown(split, mesh, test_set.batch_size, conditions.seed, conditions.options)

    if tables.workdir is None:
        return count_answers({c: {key: _classified(classifier, shown.under(c)).correct} for c in listed})
    hashes = {what: digest_of(getattr(split, what)) for what in ("images", "labels", "index")}
    shown = dataclasses.replace(shown, digests=hashes, about=_about(names, split))

    def ask(models, under):
        return {key: _classified(model, under) for key, model in models.items()}

    with workdirs.open_workdir(tables.workdir, {"shown": hashes}) as results:
        known = {} if classifier.network is None else {key: digest(classifier.network)}
        evaluation = Evaluation({key: classifier}, shown, listed, results, ask, model_digests=known)
        _refuse_another(results, shown, listed, key, classifier, known)
        described = conditions_of(shown, listed, results)
        basis = Basis.of(described, str(tables.reference), tables.reference_mismatch)
        counts = count_answers(evaluation.run(tables.progress))
        settings = {name: getattr(conditions, name) for name in ("corruptions", "severity", "seed")}
        write_tables(results, settings, f"{len(shown)} images", basis, first=listed, printed=tables.progress)
    return counts


def _about(names, split):
    """Names test images for readers of their per-image results."""
    shape = split.images.shape[1:]
    published = (names.dataset, *shape[:2]) == (IMAGENET, 224, 224)
    words = PREPROCESSING if published else "none" if names.dataset else ""
    return name_images(names.dataset, names.num_classes or int(split.labels.max()) + 1, shape, words)


def _refuse_another(results, shown, conditions, key, classifier, known):
    """Asks a classifier again about some images whose results a workdir holds; WorkdirError where it is another one."""
    for under in map(shown.under, conditions):
        record = under.record
        path = results / answers.FOLDER / f"{record.stem}.npz"
        by_model, before = answers.read_answered(path) if path.exists() else ({}, record)
        if key in by_model and not (known and before.models.get(key)):
            rows = reuse.asked_again(len(shown))
            stored, again = by_model[key], _classified(classifier, under.showing(_rows(shown.split, rows)))
            confidence = stored.confidence[PLAIN][rows] if PLAIN in stored.confidence else None
            found = reuse.differing(stored.correct[rows], confidence, again.correct, again.confidence[PLAIN])
            if wrong := reuse.in_words(found):
                raise WorkdirError(
                    f"{path} holds answers of another classifier under the name {key[0]!r}: {wrong}; give the one that was "
                    "evaluated, another name, or, where predict draws or adapts, network='WHAT IDENTIFIES IT'"
                )
            return


def _classified(classifier, shown):
    """Classifies all images under a condition."""

    def show(rows):
        return shown.showing(_rows(shown.split, rows)).images()

    found = classifier.classify(show, shown.split.labels, shown.batch_size)
    return Answered(found.correct, {PLAIN: found.confidence})


def _rows(split, rows):
    return Split(split.images[rows], split.labels[rows], split.index[rows])
