"""The overlap study: trains the missing models, evaluates, measures which corruptions overlap, selects a benchmark.

    python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes

Trains a standard model and one on each of config.study.corruptions (half of each batch corrupted), shows all of them
the same corrupted test images, and writes counts.csv, scores.csv, errors.csv with errors_summary.csv (mean error, CE
relative to config.eval.reference), overlap.csv (with overlap_long.csv for standard errors and directed transfers),
overlap.png and benchmark.json. Stopped anywhere, the same command continues.
"""

from runtime import command  # isort: skip

from analysis import answers
from analysis.overlap import study as overlap_study
from corruptions.scoring.conditions import RANDOM, expand, list_conditions
from evaluation import temperature, trained_models
from evaluation.evaluate import check_answers, evaluate_models, warn_of_tables
from evaluation.results import Basis, asked_for, write_errors
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.artifacts import provenance
from training import augmentation, cli, ranges, steps, study


def run(config, workdir):
    """Runs the study of `config` in `workdir`; returns its `analysis.overlap.Overlap` in process 0, None in others."""
    study.refuse_unnamed(config)
    trained_models.refuse_eval_only(config, "ensemble", "temperature")
    temperature.check(config)
    names, mixtures = expand(config.study.corruptions), tuple(config.study.mixtures)
    if len(names) < 2:
        raise ValueError(f"expected at least two corruptions in config.study.corruptions, found {names}")
    benchmarks = tuple(map(augmentation.benchmark, mixtures))
    conditions, of_mixtures = list_conditions(names, RANDOM), list_conditions(benchmarks, RANDOM)
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    opened = workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE)
    with opened as workdir, meshes.counting_compiles() as compiled:
        dataset, train_split, test_split = study.load_for_training(config, mesh, workdir)
        warn_of_tables(benchmarks, dataset.image_shape)
        # Refused before training: a reference or answers that do not fit.
        shown = Shown.of(config, test_split, mesh, dataset)
        basis = workdir.on_main(Basis.before, config, shown, conditions)
        check_answers(shown, [*conditions, *of_mixtures[1:]], workdir)
        held_out = temperature.held_out(config, mesh)
        trainings = (augmentation.STANDARD, *names, *mixtures)
        models = study.Trainings(config, trainings, config.study.seeds, workdir, dataset, train_split, mesh).train()
        if config.ranges and not workdir.exists("ranges.json"):  # for the report; one of tools.calibrate stays
            workdir.on_main(ranges.copy, config.ranges, workdir / "ranges.json")
        asked, temperatures = temperature.asked_for(models, config, workdir, held_out)
        evaluate_models(asked, shown, conditions, workdir, temperatures=temperatures)
        mixed = {key: model for key, model in models.items() if key[0] in (augmentation.STANDARD, *mixtures)}
        if mixtures:
            evaluate_models(mixed, shown, of_mixtures, workdir, temperatures=temperatures)
        # How often this run compiled the programs all models share: once, where nothing changes their shapes.
        workdir.write_json("compiles.json", {name: compiled[name] for name in steps.PROGRAMS})
        return workdir.on_main(_write, workdir, config, dataset, names, mixtures, basis, models)


def _write(workdir, config, dataset, names, mixtures, basis, keys):
    path, seeds = workdir.path, config.study.seeds
    study.write_timing(config, path, keys)
    record = workdir.read_json("provenance.json")
    comment = study.comment(config, record) + answers.read(path).credit(record["git_revision"])
    given = {"dataset": config.dataset.name, "num_classes": dataset.num_classes, "threshold": config.study.threshold}
    overlap, counts = overlap_study.write_results(path, names, seeds, **given, origin=comment)
    print(write_errors(path, counts, basis, asked_for(config), provenance(), comment, {"study": names}))
    if mixtures:
        members = {name: augmentation.members(name) for name in mixtures}
        overlap_study.write_mixtures(path, members, seeds, comment)
    else:
        workdir.remove("mixtures.csv")
    return overlap


if __name__ == "__main__":
    cli.define_flags("configs/overlap_shapes.py", hosts=True)
    command.run(cli.main(run, "Results are in {workdir}; the picture is {workdir}/overlap.png."), cli.parse)
