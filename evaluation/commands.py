"""The two functions of eval.py: `run` evaluates the models of a workdir, `evaluate` any classifier."""

import dataclasses
import functools
import os
import pathlib
import warnings
from typing import Any

from ml_collections import ConfigDict

from analysis import frames
from analysis.errors.reference import PREPROCESSING, of_corruption
from analysis.frames import Counted
from corruptions import enhance as enhancements
from corruptions.core import checks
from corruptions.files import digest_of
from corruptions.scoring.classifier import ClassifierEvaluation
from corruptions.scoring.conditions import CLEAN, Conditions, list_conditions
from corruptions.scoring.counts import Count
from corruptions.scoring.folder import Folder
from corruptions.scoring.predict import Classifier
from corruptions.scoring.test_set import TestSet
from data import hosts
from data.corrupted import open_corrupted
from evaluation import adaptation, natural, superclasses, temperature, trained_models
from evaluation.evaluate import Evaluation, marked, networks, warn_of_coincidence, warn_of_tables
from evaluation.results import Basis, asked_for, described_with, write_tables
from evaluation.shown import IMAGENET, Shown, ShownStored, name_images, name_stored
from runtime import artifacts, files, meshes, workdirs
from runtime.workdirs import Workdir
from training import study


def run(config: ConfigDict, workdir: pathlib.Path) -> list[Counted] | None:
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
      classifier: the name of its rows. A workdir holds several classifiers of different names.
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
    **earlier: Any,
) -> list[Count]:
    """Evaluates any classifier under corruptions as `corruptions.evaluate` does, and keeps and compares its errors as
    eval.py does for trained models.

        fog = Conditions(("imagenet_c/fog",))
        counts = evaluate(Classifier(logits), TestSet(images, labels), fog, tables=Tables("runs/mine"))

    It is that function, whose folder becomes a workdir with the tables of eval.py. The images are those that eval.py shows its
    models.

    Args:
      classifier: predict, dtype, outputs, network of `corruptions.evaluate`.
      test_set: its images, labels, index and batch_size, in memory.
      conditions: its corruptions, severity, options and seed; None is all levels of ImageNet-C.
      names: in the tables.
      tables: where they are written, and the reference of CE.
      **earlier: the keywords of 0.2, `evaluate(predict, images, labels, corruptions=...)`, which works until 0.4, with a FutureWarning.

    Returns:
      List of `corruptions.Count`: clean first, then every corruption at every severity.

    Raises:
      ValueError, TypeError: an argument, or what `predict` returns, is not as described; the workdir holds results under this
        name that this call would not compute, as those of another classifier.
      runtime.settings.SettingsError: a named reference holds for other conditions.
      runtime.workdirs.WorkdirError: the workdir is in use, or holds results on other images.
    """
    if not isinstance(classifier, Classifier):
        (classifier, test_set, conditions, names, tables), earlier = _of_0_2(classifier, test_set, conditions, earlier)
    if earlier:
        raise TypeError(f"evaluate() got an unexpected keyword argument {next(iter(earlier))!r}")
    if (whole := test_set.whole) is None:
        raise TypeError(
            "expected images with labels, found batches; corruptions.evaluate(predict, loader) takes batches"
        )
    frames.check_model_name(names.classifier)
    conditions = conditions or Conditions()
    evaluation = ClassifierEvaluation(classifier, test_set, conditions)
    if tables.workdir is None:
        return _counts(evaluation.run(None, tables.progress))
    hashes = {what: digest_of(getattr(whole, what)) for what in ("images", "labels", "index")}
    with workdirs.open_workdir(tables.workdir, {"shown": hashes}) as results:
        about = _about(names, whole)
        described = {
            c.corruption: of_corruption(c.corruption, about["image_shape"], evaluation.options[c.corruption], c.levels)
            for c in conditions.listed
            if c.corruption != CLEAN
        }
        basis = Basis.of(described_with(about, described, results), str(tables.reference), tables.reference_mismatch)
        key = (names.classifier, 0)
        folder = Folder(results.path, key, about, artifacts.git_revision(), files.write_atomically)
        counts = _counts(evaluation.run(folder, tables.progress))
        settings = {name: getattr(conditions, name) for name in ("corruptions", "severity", "seed")}
        source = f"{len(whole.labels)} images"
        write_tables(results, settings, source, basis, first=conditions.listed, printed=tables.progress)
    return counts


def _of_0_2(predict, images, labels, given):
    """Makes the arguments of `evaluate` from those of version 0.2; also returns the keywords that are none of these."""
    warnings.warn(
        "evaluate(predict, images, labels, ...) of 0.2 works until 0.4, and returns corruptions.Count: write "
        "evaluate(Classifier(predict), TestSet(images, labels), Conditions(corruptions), names=Names(...), tables=Tables(workdir)), "
        "all from eval",
        FutureWarning,
        stacklevel=3,
    )
    given = {"classifier" if name == "name" else name: value for name, value in given.items()}
    given |= {"predict": predict, "images": images, "labels": labels}

    def made(kind):
        known = [field.name for field in dataclasses.fields(kind) if field.init and field.name in given]
        return kind(**{name: given.pop(name) for name in known})

    return [made(kind) for kind in (Classifier, TestSet, Conditions, Names, Tables)], given


def _counts(correct):
    return [Count.from_correct(condition, bits) for condition, bits in correct.items()]


def _about(names, whole):
    """Names test images for readers of their per-image results."""
    shape = whole.images.shape[1:]
    published = (names.dataset, *shape[:2]) == (IMAGENET, 224, 224)
    words = PREPROCESSING if published else "none" if names.dataset else ""
    return name_images(names.dataset, names.num_classes or int(whole.labels.max()) + 1, shape, words)
