"""Adapts the BatchNorm statistics of a model to augmented training images; its weights stay.

    python -m tools.adapt --source=runs/baseline --workdir=runs/baseline_bn_augmix --config.adapt.scheme=augmix
    python eval.py --config=configs/scheme.py --workdir=runs/baseline_bn_augmix

Makes a workdir with the adapted model, which every other script takes like one of train.py; the model is called
MODEL+bn=SCHEME. Only the `adapt` settings of the config are used: the images are mirrored, cropped and augmented as for
training with the scheme, config.adapt.images of them in batches of config.adapt.batch_size (evaluation.adaptation says
what is averaged). E. Mintun, A. Kirillov, S. Xie (2021), supplement B.3, adapt a model trained with mirror and crop
alone, with a pseudo-count of 0; they state neither number of images nor batch size.
"""

from runtime import command  # isort: skip

import contextlib
import os
import pathlib

from absl import app, flags
from ml_collections import ConfigDict

from evaluation import adaptation, trained_models
from runtime import meshes, workdirs
from runtime.log import bar, log
from training import cli, loop, study
from training.checkpoints import Checkpoints, digest
from training.states import TrainState


def run(config: ConfigDict, source: str | os.PathLike | None, workdir: pathlib.Path) -> TrainState:
    """Writes the model of `source`, adapted by config.adapt, to `workdir`."""
    if not source:
        raise app.UsageError("expected --source=WORKDIR, the model to adapt")
    source, asked = pathlib.Path(source), config.adapt
    mesh = meshes.data_mesh(asked.batch_size)
    with trained_models.open_workdir(source, config) as trained:
        dataset, split, _ = study.load_data(trained, mesh, placed=("train",))
        models = trained_models.read_models(source, dataset, mesh)
    if len(models) != 1:
        raise ValueError(f"expected one model in {source}, found {len(models)}; name the workdir of one of them")
    if "adapt" in trained:
        raise ValueError(f"expected a model of train.py in {source}, found one that was adapted before")
    ((graphdef, state),) = models.values()
    recipe = adaptation.training_recipe(config, trained)
    adapted = ConfigDict(
        {key: trained[key].to_dict() for key in ("dataset", "model", "train")}
        | {name: trained[name] for name in ("seed", "imports") if name in trained}
    )
    adapted.adapt = asked.to_dict() | {"scheme": recipe.scheme, "source": digest(state)}
    with workdirs.open_workdir(workdir, adapted.to_dict(), free=workdirs.PLACES) as path:
        if workdirs.finished(path):
            log.info("%s holds this model already.", path)
            return loop.read_back(adapted, dataset.image_shape[0], dataset.num_classes, path, mesh=mesh)[1]
        batches = adaptation.training_images(recipe, split, asked.images, asked.seed, mesh)
        shown = bar("batch", batches, desc="adapting")
        state, number = adaptation.adapt(graphdef, state, shown, asked.pseudo_count)
        with contextlib.closing(Checkpoints(path / "checkpoints")) as checkpoints:
            checkpoints.save(state)
        final = {"step": int(state.step), "digest": digest(state), "num_classes": dataset.num_classes}
        workdirs.write_final(path, **final, adapted_to=number)
    return state


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_string("source", None, "Workdir of train.py with the model to adapt (required).")
    done = "The model is in {workdir}; evaluate it with: python eval.py --workdir={workdir}"
    command.run(cli.main(lambda config, workdir: run(config, flags.FLAGS.source, workdir), done), cli.parse)
