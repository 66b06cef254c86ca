"""Trained models of a workdir, for evaluation, calibration, distances and fine-tuning."""

import contextlib
import pathlib
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from analysis.answers import Key
from corruptions.assets import FROM_FILES
from corruptions.files import digest_of_file
from data import Dataset
from data.natural import sets
from evaluation.correctness import Model
from models import torchvision
from runtime import command, distributed, files, workdirs
from runtime.log import log
from runtime.settings import SettingsError
from runtime.workdirs import Workdir, open_existing, read_config, read_final
from training import augmentation, loop, states, study
from training.checkpoints import Checkpoints, digest
from training.sections import SETTINGS, TrainSettings

_EVAL_ONLY = ("adapt", "enhance", "ensemble", "images", "natural", "stored", "superclasses", "temperature")


@contextlib.contextmanager
def open_workdir(workdir: pathlib.Path, config: ConfigDict) -> Iterator[ConfigDict]:
    """Locks a workdir that holds models and yields the config they were trained with.

    Images, photographs of frost and weights of style transfer are where `config` says, and images are placed as it
    says: machine and device may differ from the training's. With config.model.checkpoint the workdir is first made of
    those weights (`import_weights`).

    Raises:
      FileNotFoundError: no such directory.
      WorkdirError: its config.json was edited, or another run holds it.
    """
    if config.model.checkpoint:
        of_weights = study.model_config(config, augmentation.STANDARD, config.seed)
        import_weights(of_weights, config.model, workdir)
    if not Workdir(workdir).for_all(_is_there, workdir):
        raise FileNotFoundError(f"expected a workdir with trained models, found no directory {workdir}")
    with open_existing(workdir):
        trained = _settings(workdir)
        if config.dataset.data_dir:
            trained.dataset.data_dir = config.dataset.data_dir
        trained.dataset.placement = config.dataset.placement
        # Digests of photographs of frost, of banks and of weights of style transfer (`cli.use_files`).
        given, options = config.train.corruption_options, trained.train.corruption_options
        for known in FROM_FILES.values():
            for name in known.corruptions:
                if known.option in given.get(name, {}):
                    options[name] = {**options.get(name, {}), known.option: given[name][known.option]}
        yield trained


def _is_there(workdir):
    files.fetch(workdir)  # another machine may have trained the models
    return workdir.is_dir()


def refuse_eval_only(config: ConfigDict, *but: str) -> None:
    """Refuses (SettingsError) settings of config.eval that only eval.py applies, except some."""
    given = {key: config.eval[key] for key in _EVAL_ONLY if config.eval[key] and key not in but}
    if given:
        raise SettingsError(
            "; ".join(
                f"expected config.eval.{k} {SETTINGS[f'eval.{k}'].default!r}, found {v!r}" for k, v in given.items()
            )
            + "; this command does not apply it, eval.py does"
        )


def apply_eval(trained: ConfigDict, config: ConfigDict) -> None:
    """Takes the `eval` settings, the calibrated ranges and the options of corruptions of `config` over into `trained`."""
    trained.eval = config.eval
    trained.ranges = config.ranges
    take_options(trained, config)


def take_options(trained: ConfigDict, config: ConfigDict) -> None:
    """Takes the options of corruptions, ranges among them, of `config` over into `trained`, whose other options stay."""
    options = trained.train.corruption_options
    for name, values in config.train.corruption_options.items():
        options[name] = {**options.get(name, {}), **values}


def read_models(workdir: pathlib.Path, dataset: Dataset, mesh: jax.sharding.Mesh) -> dict[Key, Model]:
    """Reads every model of `list_models`, to be shown images of `dataset`: {(name, seed): (graphdef, state)}.

    Raises as `list_models`, `read_model` and `check_classes`.
    """
    workdir, size = pathlib.Path(workdir), dataset.image_shape[0]
    found = list_models(workdir).items()
    check_classes(_settings(workdir), dataset, Workdir(workdir))
    return {key: read_model(folder, dataset.num_classes, size, mesh) for key, folder in found}


def list_models(workdir: pathlib.Path) -> dict[Key, pathlib.Path]:
    """Lists the finished models of a workdir without reading them: {(name, seed): folder}.

    A study's model lies in models/NAME/seedN; other folders with models, such as backups, are named and left.

    Raises:
      FileNotFoundError: no model there is finished.
    """
    workdir, models, left = pathlib.Path(workdir), {}, []
    for folder in find(workdir):
        config = _settings(folder)
        name, seed = model_name(config), config.seed
        if folder in (workdir, study.model_dir(workdir, name, seed)):
            models[name, seed] = folder
        else:
            left.append(str(folder.relative_to(workdir)))
    if left:
        log.warning("%s: left out %s, whose names differ from the names of their models.", workdir, ", ".join(left))
    if not models:
        raise FileNotFoundError(
            f"expected models in folders models/NAME/seedN of {workdir}, found only {', '.join(left)}"
        )
    return models


def read_model(folder: pathlib.Path, num_classes: int, image_size: int, mesh: jax.sharding.Mesh) -> Model:
    """Reads the finished model in a folder of `list_models`; ValueError: it has another number of classes."""
    final = read_final(folder)
    if (of_model := final["num_classes"]) != num_classes:
        stride = "; --config.model.class_stride=10, in a new workdir, keeps every tenth class (ImageNet-100)"
        raise ValueError(
            f"expected a dataset of {of_model} classes, as many as the model in {folder} has, found {num_classes}"
            + (stride if final["step"] == 0 else "")  # imported weights have step 0
        )
    return loop.read_back(_settings(folder), image_size, num_classes, folder, mesh=mesh)


def check_classes(trained: ConfigDict, dataset: Dataset, workdir: Workdir) -> None:
    """Refuses (ValueError) other classes than those of training, or class folders of ImageNet in another order than the
    logits of imported weights have.

    ImageNet-100 is every tenth class here; other publications have other hundreds.
    """
    known = workdir.read_json("data.json").get("class_names") if workdir.exists("data.json") else None
    if known and (differ := [pair for pair in zip(known, dataset.class_names) if pair[0] != pair[1]]):
        raise ValueError(
            f"expected the classes that the models of {workdir} were trained on, found {differ[0][1]} in the place of "
            f"{differ[0][0]}; --config.dataset.data_dir names the folder"
        )
    if "imported" not in trained or dataset.name not in ("imagenet", "imagenet100"):
        return
    expected = tuple(sets.imagenet().groups)[:: trained.imported.class_stride]
    differ = [pair for pair in zip(expected, dataset.class_names) if pair[0] != pair[1]]
    if differ and len(expected) == dataset.num_classes:  # `read_model` names another number
        raise ValueError(
            f"expected the class folders of the imported weights, {expected[0]}, {expected[1]} ... in this order, found "
            f"{differ[0][1]} in the place of {differ[0][0]}"
        )


def _settings(folder):
    """Reads the config of a model or of a study."""
    config = read_config(folder)
    if lost := [section for section in ("dataset", "model", "train") if not isinstance(config.get(section), dict)]:
        raise files.DamagedFileError(
            f"{folder / 'config.json'}: expected the settings of a model, found none of {', '.join(lost)}; restore it "
            "or use another folder"
        )
    command.refuse_imports(config.get("imports", ()), folder / "config.json")
    return ConfigDict(config)


def model_name(config: ConfigDict) -> str:
    """Names a model by its training (`study.name_of`), with `+bn=SCHEME` where tools.adapt adapted its statistics."""
    name = study.name_of(TrainSettings.of(config.train))
    return f"{name}+bn={config.adapt.scheme or augmentation.STANDARD}" if "adapt" in config else name


def find(workdir: str | pathlib.Path) -> list[pathlib.Path]:
    """Lists the folders of the finished models in a workdir of train.py or overlap.py.

    Raises:
      FileNotFoundError: there is none.
    """
    workdir = pathlib.Path(workdir)
    if workdirs.finished(workdir):
        return [workdir]
    paths = Workdir(workdir).for_all(lambda: sorted(str(p.parent) for p in workdir.glob("models/*/*/final.json")))
    if not paths:
        raise FileNotFoundError(f"expected a workdir with trained models, found none in {workdir}; run train.py first")
    return list(map(pathlib.Path, paths))


# Weights that were trained elsewhere.


def import_weights(config: ConfigDict, weights: ConfigDict, workdir: pathlib.Path) -> None:
    """Makes `workdir` the workdir of a finished model with imported weights, unless it is one already.

    config.json names the file, its sha256 and the stride under `imported`: other weights in the same workdir are
    refused. final.json holds the number of classes.

    Args:
      config: config of one model (`study.model_config`). Its training settings do not apply, so its epochs become 0.
      weights: config.model with `checkpoint`, a file of torchvision's weights for its `name`, and `class_stride`; see
        `models.torchvision.load`.
      workdir: as for `workdirs.open_workdir`.

    Raises:
      ValueError, FileNotFoundError, RuntimeError: the weights cannot be read or do not fit the model.
      WorkdirError: `workdir` holds something else.
    """
    checkpoint = pathlib.Path(files.local(weights.checkpoint)).expanduser()
    if not checkpoint.is_file():
        raise FileNotFoundError(f"expected a file of weights as config.model.checkpoint, found no file {checkpoint}")
    config.train.epochs = 0
    sha256 = digest_of_file(checkpoint)
    config.imported = {"file": checkpoint.name, "sha256": sha256, "class_stride": weights.class_stride}
    done = workdirs.finished(workdir)
    if not done and distributed.several():
        raise ValueError(
            f"expected {workdir} to hold the imported model already, for many processes to evaluate; make it with one"
        )
    if not done:  # before the workdir is made: weights that do not fit leave no files
        stride = weights.class_stride
        model, num_classes = torchvision.load(path=checkpoint, class_stride=stride, **config.model)
    with workdirs.open_workdir(workdir, config.to_dict(), free=workdirs.PLACES) as path:
        if done:
            return
        _, params, statistics = nnx.split(model, nnx.Param, ...)
        state = states.initial_state(params, statistics, states.make_optimizer(config.train, 1))
        with contextlib.closing(Checkpoints(path / "checkpoints")) as checkpoints:
            checkpoints.save(state)
        workdirs.write_final(path, step=0, digest=digest(state), num_classes=num_classes)
    log.info("Imported %s (%d classes, sha256 %s) into %s.", checkpoint, num_classes, sha256[:12], workdir)


# The model that a training run starts from.


def start_of(config: ConfigDict) -> dict[str, str]:
    """Returns the digest of the model from which a run of `config` starts, for the config of the run: a run continues only
    from the same one. {} where it starts from drawn parameters.

    Raises:
      FileNotFoundError, ValueError: config.train.init_from names no file and no workdir with one model to start from.
      SettingsError: config.train.frozen is given without it.
    """
    start, frozen = config.train.init_from, config.train.frozen
    if start:
        path = pathlib.Path(files.local(start)).expanduser()
        return {"digest": digest_of_file(path) if path.is_file() else read_final(_start_folder(path))["digest"]}
    if frozen:
        raise SettingsError(
            f"config.train.init_from: expected a workdir or a file of weights with config.train.frozen {frozen!r}, which "
            "keeps what it starts from, found ''"
        )
    return {}


def read_start(start: str, config: ConfigDict, dataset: Dataset, mesh: jax.sharding.Mesh) -> states.TrainState:
    """Reads the state from which a run of `config` on `dataset` starts.

    With config.train.frozen the last layer is drawn from the seed, for the classes of `dataset`; the model that the run
    starts from may have any number of classes then.

    Args:
      start: a workdir with one model, or with one standard model; or a file of weights of the network of config.model
        (`models.torchvision.load`).
      config: config of the run.
      dataset: dataset of the run.
      mesh: devices that the model of a workdir is replicated over.

    Raises:
      ValueError: the model there is of another architecture or has other classes, or which one is meant is not clear.
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
    """Reads (graphdef, params, statistics) of the model that a run starts from; `num_classes` None takes any number."""
    path = pathlib.Path(files.local(start)).expanduser()
    if path.is_file():
        model, of_file = torchvision.load(path=path, **config.model)
        if num_classes not in (None, of_file):
            raise ValueError(
                f"expected weights of {num_classes} classes in {path}, found {of_file}; eval.py makes a workdir of some of "
                "the classes, with config.model.class_stride"
            )
        return nnx.split(model, nnx.Param, ...)
    folder = _start_folder(path)
    if num_classes is None:
        num_classes = read_final(folder)["num_classes"]
    graphdef, state = read_model(folder, num_classes, size, mesh)
    return graphdef, state.params, state.statistics


def _start_folder(path):
    """Returns the folder of the model in a workdir that a run starts from."""
    folders = list_models(path)
    candidates = list(folders) if len(folders) == 1 else [key for key in folders if key[0] == augmentation.STANDARD]
    if len(candidates) != 1:
        raise ValueError(f"expected one model or one standard model in {path}, found {sorted(folders)}")
    return folders[candidates[0]]
