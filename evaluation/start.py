"""What a run starts from: a trained model of a workdir, or weights in a file."""

import pathlib

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from data import Dataset
from evaluation import imported, trained_models
from runtime.schema import SettingsError
from runtime.workdirs import read_final
from training import augmentation, states


def check(config: ConfigDict) -> None:
    """Checks that there is what a run of `config` starts from.

    Raises:
      FileNotFoundError: config.train.init_from names no file and no workdir with trained models.
      SettingsError: config.train.frozen is given without it.
    """
    start, frozen = config.train.init_from, config.train.frozen
    path = pathlib.Path(start).expanduser()
    if start and not path.is_file():
        trained_models.find(path)
    if frozen and not start:
        raise SettingsError(
            f"config.train.init_from: expected a workdir or a file of weights with config.train.frozen {frozen!r}, which "
            "keeps what it starts from, found ''"
        )


def read(start: str, config: ConfigDict, dataset: Dataset, mesh: jax.sharding.Mesh) -> states.TrainState:
    """Reads what a run of `config` starts from.

    With config.train.frozen the last layer is drawn from the seed, for the classes of `dataset`,
    however many the model has.

    Args:
      start: a workdir, of whose models the only, or the standard, one is read; or a file of weights
        of the network of config.model (`models.torchvision.load`).
      config: of the run.
      dataset: what it is trained on.
      mesh: a workdir's model is replicated over its devices.

    Raises:
      ValueError: the model there is of another architecture or has other classes, or which one is
        meant is not clear.
    """
    size, frozen = dataset.image_shape[0], config.train.frozen
    graphdef, params, statistics = _network(start, config, None if frozen else dataset.num_classes, size, mesh)
    expected, drawn, _ = states.build_model(config, dataset.num_classes, size)
    if frozen and jax.tree.structure(drawn) == jax.tree.structure(params):
        params = jax.tree_util.tree_map_with_path(
            lambda path, new, old: new if states.of_head(path) else old, drawn, params
        )
    if expected != graphdef or jax.tree.map(jnp.shape, drawn) != jax.tree.map(jnp.shape, params):
        raise ValueError(f"expected a {config.model.name} as config.model says in {start}, found another network")
    return states.initial_state(params, statistics, states.make_optimizer(config.train, 1))


def _network(start, config, num_classes, size, mesh):
    """(graphdef, params, statistics) of what a run starts from; `num_classes` None takes any number."""
    path = pathlib.Path(start).expanduser()
    if path.is_file():
        model, of_file = imported.read(config, path)
        if num_classes not in (None, of_file):
            raise ValueError(
                f"expected weights of {num_classes} classes in {path}, found {of_file}; eval.py makes a workdir of some of "
                "the classes, with config.model.class_stride"
            )
        return nnx.split(model, nnx.Param, ...)
    folders = trained_models.list_models(path)
    candidates = list(folders) if len(folders) == 1 else [key for key in folders if key[0] == augmentation.STANDARD]
    if len(candidates) != 1:
        raise ValueError(f"expected one model or one standard model in {start}, found {sorted(folders)}")
    folder = folders[candidates[0]]
    if num_classes is None:
        num_classes = read_final(folder)["num_classes"]
    graphdef, state = trained_models.read_model(folder, num_classes, size, mesh)
    return graphdef, state.params, state.statistics
