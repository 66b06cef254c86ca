"""Trains networks and tabulates their errors under corruptions with and without each enhancement.

    python -m projects.structural.enhancement_study --config=projects/structural/configs/enhancements.py --workdir=runs/enhancements
    python -m projects.structural.enhancement_study --config=projects/structural/configs/enhancements.py:smoke --workdir=runs/enhancements_smoke

Trains a standard model for each of config.study.seeds and evaluates all of them on the same images under
config.eval.corruptions, without and with each of config.study.enhancements (`corruptions.enhance`). Writes the tables
of eval.py and

    enhancements/table.md, .csv, .tex     clean error, mean error, mCE relative to the standard model (100), over
                                          seeds, with standard errors

For an enhancement `train=NAME` a second set of networks is trained with it, in WORKDIR/train=NAME, and evaluated with
it; `train=stability` is stability training. WORKDIR, and each folder of a network there, is a workdir of eval.py.
Stopped anywhere, the same command continues; with more enhancements or seeds it adds the missing ones.
"""

from runtime import command  # isort: skip

import pathlib

from ml_collections import ConfigDict

from analysis.errors import joint
from analysis.frames import STANDARD
from corruptions import enhance as enhancements
from corruptions.scoring.conditions import list_conditions
from evaluation import trained_models
from evaluation.evaluate import evaluate_models, marked, warn_of_tables
from evaluation.results import Basis, asked_for, write_tables
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.workdirs import TRAINED
from training import cli, steps, study

_MEASURES = ("mean_error", "mCE")


def run(config: ConfigDict, workdir: pathlib.Path) -> str:
    """Runs the study of `config` in `workdir`; returns its table as Markdown."""
    if not config.study.enhancements:
        raise ValueError(
            "expected enhancements in config.study.enhancements, found none; projects/structural/configs/enhancements.py names some"
        )
    study.refuse_unnamed(config)
    trained_models.refuse_eval_only(config)
    conditions = list_conditions(config.eval.corruptions, config.eval.severity)
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    with workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE) as path:
        dataset, train_split, test_split = study.load_for_training(config, mesh, path)
        warn_of_tables(config.eval.corruptions, dataset.image_shape)
        shown = Shown.of(config, test_split, mesh, dataset)
        # Before training: a reference that does not fit is refused.
        basis = path.on_main(Basis.before, config, shown, conditions, path)

        def train(own, folder):
            return study.Trainings(own, (STANDARD,), own.study.seeds, folder, dataset, train_split, mesh).train()

        def evaluate(models, enhance=""):
            models = marked(models, enhancements.label(enhance)) if enhance else models
            evaluate_models(models, shown, conditions, path, enhance=enhance)

        standard = train(config, path)
        evaluate(standard)
        for name in config.study.enhancements:
            if not name.startswith(TRAINED):
                evaluate(standard, name)
                continue
            own = trained_with(config, name.removeprefix(TRAINED))
            evaluate(marked(train(own, path / name), name), own.train.enhance)
        return path.on_main(_write, config, path.path, conditions, dataset.name, basis)


def trained_with(config: ConfigDict, name: str) -> ConfigDict:
    """Copies a config and trains with an enhancement of images, or for `stability`."""
    own = ConfigDict(config.to_dict())
    if name == "stability":
        own.train.stability_weight, own.train.stability_noise = steps.STABILITY_IN_STUDIES
    else:
        own.train.enhance = name
    return own


def _write(config, path, conditions, source, basis):
    write_tables(path, asked_for(config), source, basis, first=conditions, printed=False)
    evaluated = [joint.read(path, *joint.names([path]))]
    table = joint.joint(
        evaluated,
        reference=config.eval.reference or str(path),
        mismatch=config.eval.reference_mismatch,
        measures=_MEASURES,
    )
    joint.write(path / "enhancements", table)
    return joint.markdown(table)


if __name__ == "__main__":
    cli.define_flags("projects/structural/configs/enhancements.py", hosts=True)
    command.run(cli.main(run), cli.parse)
