"""Adapts the BatchNorm statistics of a trained model to augmented training images; its weights stay.

    python -m tools.adapt --source=runs/baseline --workdir=runs/baseline_bn_augmix --config.adapt.scheme=augmix
    python eval.py --config=configs/scheme.py --workdir=runs/baseline_bn_augmix

Makes a workdir with the adapted model, which every other script takes like one of train.py; the model is called
MODEL+bn=SCHEME. Only the `adapt` settings of the config are used: the images are mirrored, cropped and augmented as
for training with the scheme, config.adapt.images of them in batches of config.adapt.batch_size (evaluation.adaptation
says what is averaged). E. Mintun, A. Kirillov, S. Xie (2021), supplement B.3, adapt a model trained with mirror and
crop alone, with a pseudo-count of 0; they state neither number of images nor batch size.
"""

import contextlib
import pathlib

import jax
from absl import app, flags
from ml_collections import ConfigDict
from tqdm import tqdm

from evaluation import adaptation, trained_models
from runtime import command, compiles, meshes, workdirs
from runtime.log import log
from training import augmentation, batch_norm, batches, cli, loop, stream, study
from training.checkpoint import Checkpoints, digest


def run(config, source, workdir):
    """Writes the model of `source`, adapted by config.adapt, to `workdir`; returns its TrainState."""
    wanted = config.adapt
    if wanted.batch_size < 2 or wanted.images < wanted.batch_size:
        raise ValueError(
            f"expected config.adapt.batch_size of at least 2 and as many images, found {wanted.batch_size} and "
            f"{wanted.images}"
        )
    mesh = meshes.data_mesh(wanted.batch_size)
    with trained_models.open_workdir(source, config) as own:
        dataset, split, _ = study.load_data(own, mesh, placed=("train",))
        models = trained_models.read_models(source, dataset.num_classes, dataset.image_shape[0], mesh)
    if len(models) != 1:
        raise ValueError(f"expected one model in {source}, found {len(models)}; name the workdir of one of them")
    if "adapt" in own:
        raise ValueError(f"expected a model of train.py in {source}, found one that was adapted before")
    ((graphdef, state),) = models.values()
    one = ConfigDict({key: own[key].to_dict() for key in ("dataset", "model", "train")} | {"seed": own.seed})
    recipe = _recipe(config, own, wanted)
    one.adapt = wanted.to_dict() | {"scheme": recipe.scheme, "source": digest(state)}
    with workdirs.open_workdir(workdir, one.to_dict(), free=study.FREE) as path:
        if loop.finished(path):
            log.info("%s holds this model already.", path)
            return loop.read_back(one, dataset.image_shape[0], dataset.num_classes, path, mesh=mesh)[1]
        images = tqdm(_images(recipe, wanted, split, mesh), desc="adapting", unit="batch", dynamic_ncols=True)
        state, number = adaptation.adapt(graphdef, state, images, wanted.pseudo_count)
        with contextlib.closing(Checkpoints(path / "checkpoints")) as checkpoints:
            checkpoints.save(state)
        workdirs.write_json(
            path / "final.json", {"step": int(state.step), "digest": digest(state), "adapted_to": number}
        )
    return state


def _recipe(config, own, wanted):
    """Settings of training with the scheme, in batches of the adaptation; older workdirs lack some of today's."""
    changed = ConfigDict(own.to_dict())
    changed.train = config.train.to_dict() | own.train.to_dict()
    changed.train.update({
        "scheme": wanted.scheme, "corruption": augmentation.STANDARD, "jsd_weight": 0.0, "reading": "paper",
        "batch_size": wanted.batch_size, "epochs": 1, "batch_norm": batch_norm.SYNCHRONISED,
    })  # fmt: skip
    return study.model_config(changed, augmentation.STANDARD, own.seed).train


def _images(recipe, wanted, split, mesh):
    """Batches of augmented training images, images // batch_size of them."""
    plan = batches.Plan(recipe, split.images.shape)
    steps = wanted.images // wanted.batch_size
    if steps > plan.steps_per_epoch:
        raise ValueError(f"expected config.adapt.images up to {len(split)}, the training images, found {wanted.images}")
    plan.block_steps = 1
    order_key, *keys = jax.random.split(jax.random.key(wanted.seed), 5)
    order = batches.epoch_order(order_key, plan.views)
    with stream.source(split, plan, wanted.batch_size, lambda epoch: order, 0, mesh) as views:
        for step in range(steps):
            images, _ = batches.block(recipe, plan, views, order, step, step, batches.Keys(*keys), mesh)
            yield images[0]


def main(argv):
    with command.errors():
        config, workdir = cli.read_flags(argv)
        if not flags.FLAGS.source:
            raise app.UsageError("expected --source=WORKDIR, the model that is adapted")
        compiles.enable_compilation_cache()
        run(config, pathlib.Path(flags.FLAGS.source), workdir)
    log.info("The model is in %s; evaluate it with: python eval.py --workdir=%s", workdir, workdir)


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_string("source", None, "Workdir of train.py with the model that is adapted (required).")
    app.run(main)
