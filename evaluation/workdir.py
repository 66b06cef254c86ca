"""The evaluation of a workdir's models as config.eval asks for it: what eval.py does."""

import functools
import pathlib

from ml_collections import ConfigDict

from analysis.tables import Count
from corruptions import enhance as enhancements
from data.corrupted import open_corrupted
from evaluation import adaptation, measured, natural, trained_models
from evaluation.conditions import list_conditions, warn_of_coincidence, warn_of_tables
from evaluation.evaluate import digests, evaluate_models, marked
from evaluation.results import Frame, asked_for, count_answers, write_tables
from evaluation.shown import Shown, ShownStored
from runtime import distributed, meshes
from training import study


def run(config: ConfigDict, workdir: pathlib.Path) -> list[Count] | None:
    """Evaluates every finished model of `workdir` under config.eval.

    Returns:
      What counts.csv holds; of many processes only in the first, None in the others.
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
        prepare = None
        if config.eval.adapt:
            models = marked(models, adaptation.label(config.eval))
            prepare = functools.partial(adaptation.adapt_to_test, config.eval.pseudo_count)
        enhance = config.eval.enhance
        if enhance:
            models = marked(models, enhancements.label(enhance))
        results, shown = workdir, Shown.of(trained, test_split, mesh, dataset.provenance)
        frame = distributed.on_main(lambda: _frame(config, dataset, shown, stored, conditions, workdir))
        answers = evaluate_models(models, shown, conditions, workdir, prepare, enhance)
        answers |= natural.evaluate_natural(models, trained, dataset, shown, workdir, prepare)
        if stored:
            results = workdir / "stored" / stored.path.name
            distributed.on_main(lambda: results.mkdir(parents=True, exist_ok=True))
            shown = ShownStored(stored, mesh, config.eval.batch_size)
            answers |= evaluate_models(models, shown, shown.conditions, results, enhance=enhance)
        counts, of_models, settings = count_answers(answers), digests(models), asked_for(config, trained)
        return distributed.on_main(lambda: write_tables(results, counts, settings, dataset.name, frame, of_models))


def _frame(config, dataset, shown, stored, conditions, workdir):
    """What the errors are measured under; a reference that does not fit is refused before anything
    is evaluated.
    """
    if not stored:
        return Frame.of_dataset(config, dataset, shown, conditions, workdir)
    measured_under = measured.of_stored(dataset, stored)
    return Frame.of(measured_under, config.eval.reference, config.eval.reference_mismatch, stored=True)
