"""The evaluation of a workdir's models as config.eval says: what eval.py does."""

import functools
import pathlib

from ml_collections import ConfigDict

from analysis.tables import Count
from corruptions import enhance as enhancements
from data.corrupted import open_corrupted
from evaluation import adaptation, measured, natural, trained_models
from evaluation.conditions import list_conditions, warn_of_coincidence, warn_of_tables
from evaluation.evaluate import Evaluation, marked, networks
from evaluation.results import Frame, asked_for, write_tables
from evaluation.shown import Shown, ShownStored
from runtime import meshes
from runtime.workdirs import Workdir
from training import study


def run(config: ConfigDict, workdir: pathlib.Path) -> list[Count] | None:
    """Evaluates every finished model of `workdir` under config.eval.

    Everything is opened and checked before the first image is shown: models, datasets, earlier
    answers, the reference.

    Returns:
      The rows of counts.csv in process 0, None in others.
    """
    stored = None
    if config.eval.stored:
        where = config.dataset.data_dir or None
        stored = open_corrupted(config.eval.stored, data_dir=where, verify=config.eval.verify)
    conditions = list_conditions(() if stored else config.eval.corruptions, config.eval.severity)
    mesh = meshes.data_mesh(config.eval.batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        trained_models.apply_eval(trained, config)
        dataset, _, test_split = study.load_data(trained, mesh, placed=("test",))
        warn_of_tables(config.eval.corruptions, dataset.image_shape)
        warn_of_coincidence(trained.train, [condition.corruption for condition in conditions[1:]])
        models = trained_models.read_models(workdir, dataset.num_classes, dataset.image_shape[0], mesh)
        prepare, enhance = None, config.eval.enhance
        if config.eval.adapt:
            models = marked(models, adaptation.label(config.eval))
            prepare = functools.partial(adaptation.adapt_to_test, config.eval.pseudo_count)
        if enhance:
            models = marked(models, enhancements.label(enhance))
        ask, results = networks(prepare, enhance), Workdir(workdir)
        shown, settings = Shown.of(trained, test_split, mesh, dataset), asked_for(config, trained)
        if stored:
            results = Workdir(workdir / "stored" / stored.path.name)
        evaluations = [Evaluation(models, shown, conditions, results, ask)]
        evaluations += natural.open_evaluations(models, trained, dataset, shown, results, ask)
        if stored:
            shown = ShownStored(
                stored, mesh, config.eval.batch_size, measured.of_stored(dataset, stored, settings["imports"])
            )
            conditions = shown.conditions
            evaluations.append(Evaluation(models, shown, conditions, results, networks(enhance=enhance)))
        frame = results.on_main(Frame.before, config, shown, conditions, results)
        for evaluation in evaluations:
            evaluation.run()
        return results.on_main(_tables, results, settings, dataset.name, frame, conditions)


def _tables(results, settings, source, frame, conditions):
    return write_tables(results, settings, source, frame, first=conditions)
