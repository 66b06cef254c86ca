"""Trains a model with each of many augmentation schemes, evaluates all of them, and tabulates their errors.

    python -m tools.scheme_study --config=configs/scheme_study.py:cifar10 --workdir=runs/schemes

Trains one model for each of config.study.schemes (`standard` is none, `NAME+jsd` adds AugMix's consistency loss,
`augmix=*` stands for the 512 subsets of its operations, `stored=FOLDER/*.npz` for files of tools.msd) and each of
config.study.seeds. config.study.parallel models train at once; those with the same kind of images share one compiled
step. Shows all of them the same images under config.eval.corruptions, and writes

    counts.csv, scores.csv, errors.csv, errors_summary.csv     as eval.py does
    schemes.csv              clean error, mean errors on benchmarks, C-bar minus C, over seeds
    scheme_errors.png        the same errors as a figure, of up to 60 schemes
    scheme_corruptions.csv   error on each corruption, over seeds
    transforms.csv, .png     error against the number of stored transforms
    correlations.csv, .png   error against MSD, correlations_mmd.png against MMD, where
                             tools.msd has measured distances in the same workdir

Stopped anywhere, the same command continues; with more schemes or seeds it trains the missing models. A model is called
by its scheme's canonical name. The workdir is one of eval.py and tools.msd, too.
"""

from runtime import command  # isort: skip

import pathlib

from ml_collections import ConfigDict

from analysis import answers
from analysis import schemes as results
from analysis.errors.scores import ImageErrors
from analysis.errors.summary import score
from corruptions.scoring.conditions import list_conditions
from evaluation import trained_models
from evaluation.evaluate import evaluate_models, warn_of_coincidence, warn_of_tables
from evaluation.results import Basis, asked_for, write_tables
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.artifacts import provenance
from training import augmentation, cli, steps, study


def run(config: ConfigDict, workdir: pathlib.Path) -> list[str]:
    """Runs the study of `config` in `workdir`; returns the names of its schemes."""
    study.refuse_unnamed(config)
    trained_models.refuse_eval_only(config)
    for key, plain in (("corruption", augmentation.STANDARD), ("jsd_weight", 0.0), ("init_from", "")):
        if (found := config.train[key]) != plain:
            raise ValueError(f"expected config.train.{key} {plain!r} in a study of schemes, found {found!r}")
    asked = augmentation.expand_schemes(config.study.schemes)
    if not asked:
        raise ValueError("expected schemes in config.study.schemes, found none; configs/scheme_study.py names some")
    recipes = {name: study.with_scheme(config, scheme).train for name, scheme in asked.items()}
    for name, recipe in recipes.items():
        for problem in steps.problems_of_loss(recipe):
            raise ValueError(f"{problem}, in the recipe of {name}")
    conditions = list_conditions(config.eval.corruptions, config.eval.severity)
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    opened = workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE)
    with opened as path, meshes.counting_compiles() as compiled:
        dataset, train_split, test_split = study.load_for_training(config, mesh, path)
        warn_of_tables(config.eval.corruptions, dataset.image_shape)
        for recipe in recipes.values():
            warn_of_coincidence(recipe, [condition.corruption for condition in conditions[1:]])
        shown = Shown.of(config, test_split, mesh, dataset)
        basis = path.on_main(Basis.before, config, shown, conditions, path)  # refuses a reference that does not fit
        keys, schemes = [], tuple(asked.values())
        trainings = study.Trainings(config, schemes, config.study.seeds, path, dataset, train_split, mesh)
        for models in trainings.train_in_parts(study.AT_ONCE):
            evaluate_models(models, shown, conditions, path)
            keys += models
            del models
        path.on_main(_write, config, path.path, keys, conditions, basis, list(asked))
        path.write_json("compiles.json", {name: compiled[name] for name in steps.PROGRAMS})
    return list(asked)


def _write(config, path, keys, conditions, basis, names):
    counts = write_tables(path, asked_for(config), config.dataset.name, basis, first=conditions, printed=False)
    study.write_timing(config, path, keys)
    number = len({seed for (model, seed), _ in counts if model in names})  # of this command and earlier ones
    comment = study.comment(config, provenance(), f"{number} seed{'s' if number > 1 else ''}")
    _, summaries = score(ImageErrors.of(answers.read(path), counts), basis.choice, basis.conditions)
    print("\n" + results.write_results(path, summaries, counts, names, path / config.msd.out, comment))


if __name__ == "__main__":
    cli.define_flags("configs/scheme_study.py", hosts=True)
    command.run(cli.main(run), cli.parse)
