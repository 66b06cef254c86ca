"""The overlap study: train what is missing, evaluate, measure which corruptions overlap, select a
benchmark.

    python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes

Trains a standard model and one on each of config.study.corruptions (half of each batch corrupted),
shows all of them the same corrupted test images, and writes counts.csv, scores.csv, errors.csv with
errors_summary.csv (mean error, CE relative to config.eval.reference), overlap.csv (with
overlap_long.csv for standard errors and directed transfers), overlap.png and benchmark.json.
Stopped anywhere, the same command continues.
"""

from runtime import command  # isort: skip

from analysis import overlap_study, tables
from evaluation.conditions import RANDOM, expand, list_conditions, warn_of_tables
from evaluation.evaluate import evaluate_models
from evaluation.results import Frame, asked_for, write_errors
from evaluation.shown import Shown
from runtime import compiles, distributed, meshes, workdirs
from runtime.log import log
from runtime.provenance import provenance
from training import augmentation, cli, ranges, steps, study


def run(config, workdir):
    """Runs the study of `config` in `workdir`; returns its `analysis.overlap.Overlap` (process 0;
    None in others).
    """
    study.refuse_unnamed(config)
    names = expand(config.study.corruptions)
    if len(names) < 2:
        raise ValueError(f"expected at least two corruptions in config.study.corruptions, found {names}")
    mixtures = tuple(config.study.mixtures)
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    with (
        workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE) as path,
        compiles.counting() as compiled,
    ):
        dataset, train_split, test_split = study.load_for_training(config, mesh, path)
        benchmarks = tuple(map(augmentation.benchmark, mixtures))
        shown_to_mixtures = list_conditions(benchmarks, RANDOM)  # before training: names may be wrong
        warn_of_tables(benchmarks, dataset.image_shape)
        if config.ranges and not (path / "ranges.json").exists():  # for the report; one of tools.calibrate stays
            distributed.on_main(lambda: ranges.copy(config.ranges, path / "ranges.json"))
        shown, conditions = Shown.of(config, test_split, mesh, dataset.provenance), list_conditions(names, RANDOM)
        # Before training: a reference that does not fit is refused.
        frame = distributed.on_main(lambda: Frame.of_dataset(config, dataset, shown, conditions))
        trainings = (augmentation.STANDARD, *names, *mixtures)
        models = study.Trainings(config, trainings, config.study.seeds, path, dataset, train_split, mesh).train()
        distributed.on_main(lambda: study.write_timing(config, path, models))
        answers = evaluate_models(models, shown, conditions, path)
        comment = distributed.on_main(lambda: study.comment(config, workdirs.read_json(path / "provenance.json")))
        overlap = distributed.on_main(
            lambda: overlap_study.write_results(
                path,
                _by_corruption(answers),
                names,
                dataset=config.dataset.name,
                num_classes=dataset.num_classes,
                threshold=config.study.threshold,
                comment=comment,
            )
        )
        distributed.on_main(lambda: _write_errors(path, config, frame, names, comment))
        if mixtures:
            mixture_models = {
                key: model for key, model in models.items() if key[0] in (augmentation.STANDARD, *mixtures)
            }
            answers = evaluate_models(mixture_models, shown, shown_to_mixtures, path)
            members = {name: augmentation.members(name) for name in mixtures}
            distributed.on_main(lambda: overlap_study.write_mixtures(path, _by_corruption(answers), members, comment))
        else:
            distributed.on_main(lambda: (path / "mixtures.csv").unlink(missing_ok=True))  # of an earlier run
        # How often this run compiled the programs all models share: once, where nothing changes
        # their shapes.
        workdirs.write_json(path / "compiles.json", {name: compiled[name] for name in steps.PROGRAMS})
        return overlap


def _write_errors(path, config, frame, names, comment):
    """Writes the errors of the study's models, and evaluation.json; prints those of benchmarks."""
    counts, record = tables.read_counts(path / "counts.csv"), provenance()
    print(write_errors(path, counts, frame, asked_for(config), record, comment, {"study": names}))


def _by_corruption(answers):
    """Keys the answers by name: every corruption of a study was shown under one condition."""
    return {condition.corruption: by_model for condition, by_model in answers.items()}


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s; the picture is %s.", workdir, workdir / "overlap.png")


if __name__ == "__main__":
    cli.define_flags("configs/overlap_shapes.py", hosts=True)
    command.run(main, cli.parse)
