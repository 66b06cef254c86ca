"""Trained models of a workdir, for evaluation, calibration, distances and fine-tuning."""

import contextlib
import pathlib
from collections.abc import Iterator

import jax
from ml_collections import ConfigDict

from analysis.answers import Key
from evaluation import imported
from evaluation.correctness import Model
from runtime import files, imports
from runtime.schema import SettingsError
from runtime.workdirs import Workdir, open_existing, read_config
from training import augmentation, loop, study
from training.sections import TrainSettings

_EVAL_ONLY = ("adapt", "enhance", "natural", "stored")


@contextlib.contextmanager
def open_workdir(workdir: pathlib.Path, config: ConfigDict) -> Iterator[ConfigDict]:
    """Locks a workdir that holds models and yields the config they were trained with.

    Images, photographs of frost and weights of style transfer are where `config` says, and images are
    placed as it says: machine and device may be others than those of training. With
    config.model.checkpoint the workdir is first made of those weights (`evaluation.imported`).

    Raises:
      FileNotFoundError: no such directory.
      WorkdirError: its config.json was edited, or another run has it.
    """
    if config.model.checkpoint:
        of_weights = study.model_config(config, augmentation.STANDARD, config.seed)
        imported.prepare(of_weights, config.model, workdir, free=study.FREE)
    if not Workdir(workdir).for_all(workdir.is_dir):
        raise FileNotFoundError(f"expected a workdir with trained models, found no directory {workdir}")
    with open_existing(workdir):
        trained = _settings(workdir)
        if config.dataset.data_dir:
            trained.dataset.data_dir = config.dataset.data_dir
        trained.dataset.placement = config.dataset.placement
        _take_files(trained, config)
        yield trained


def _take_files(trained: ConfigDict, config: ConfigDict) -> None:
    """Copies the digests of photographs of frost and of weights of style transfer (`cli.use_files`)."""
    given = config.train.corruption_options.to_dict()
    for name, option, _ in study.FROM_FILES.values():
        if option in given.get(name, {}):
            before = trained.train.corruption_options.to_dict()
            options = before.get(name, {}) | {option: given[name][option]}
            trained.train.corruption_options = before | {name: options}


def refuse_eval_only(config: ConfigDict) -> None:
    """Refuses what config.eval asks of eval.py, in a command that shows images and models as they
    are.

    Raises:
      SettingsError: names each of these settings that is given.
    """
    given = {key: config.eval[key] for key in _EVAL_ONLY if config.eval[key]}
    if given:
        raise SettingsError(
            "; ".join(f"expected config.eval.{key} '', found {value!r}" for key, value in given.items())
            + "; this command does not apply it, eval.py does"
        )


def apply_eval(trained: ConfigDict, config: ConfigDict) -> None:
    """Takes the `eval` settings and the calibrated ranges of `config` over into `trained`."""
    trained.eval = config.eval
    trained.ranges = config.ranges
    options = trained.train.corruption_options
    for name, values in config.train.corruption_options.items():
        options[name] = {**options.get(name, {}), **values}


def take_ranges(trained: ConfigDict, config: ConfigDict) -> None:
    """Takes the options of `config` over into `trained` where it has calibrated ranges: these, and
    the photographs of frost.
    """
    if config.ranges:
        trained.train.corruption_options = config.train.corruption_options


def read_models(workdir: pathlib.Path, num_classes: int, image_size: int, mesh: jax.sharding.Mesh) -> dict[Key, Model]:
    """Reads every finished model in a workdir of train.py or overlap.py.

    Returns:
      {(name, seed): (graphdef, state)}; see `model_name` for the names.

    Raises:
      FileNotFoundError: no model there is finished.
      ValueError: a model has another number of classes.
    """
    return {
        key: read_model(folder, num_classes, image_size, mesh)
        for key, folder in list_models(pathlib.Path(workdir)).items()
    }


def list_models(workdir: pathlib.Path) -> dict[Key, pathlib.Path]:
    """Lists the finished models of a workdir without reading them: {(name, seed): folder}.

    Raises:
      FileNotFoundError: no model there is finished.
    """
    configs = [(folder, _settings(folder)) for folder in find(workdir)]
    return {(model_name(config), config.seed): folder for folder, config in configs}


def read_model(folder: pathlib.Path, num_classes: int, image_size: int, mesh: jax.sharding.Mesh) -> Model:
    """Reads the finished model in a folder of `list_models`.

    Raises:
      ValueError: it has another number of classes.
    """
    imported.check_classes(folder, num_classes)
    return loop.read_back(_settings(folder), image_size, num_classes, folder, mesh=mesh)


def _settings(folder):
    """The config of a model or of a study."""
    config = read_config(folder)
    if lost := [section for section in ("dataset", "model", "train") if not isinstance(config.get(section), dict)]:
        raise files.DamagedFileError(
            f"{folder / 'config.json'}: expected the settings of a model, found none of {', '.join(lost)}; restore it "
            "or use another folder"
        )
    imports.import_all(config.get("imports", ()))
    return ConfigDict(config)


def _finished_models(workdir: pathlib.Path) -> list[pathlib.Path]:
    paths = Workdir(workdir).for_all(lambda: sorted(str(p.parent) for p in workdir.glob("models/*/*/final.json")))
    return [pathlib.Path(path) for path in paths]


def model_name(config: ConfigDict) -> str:
    """Names a model by what its config says it was trained with.

    `standard`, a corruption, a mixture, or an augmentation scheme (with `+jsd` for its consistency
    loss); `+bn=SCHEME` when its BatchNorm statistics were adapted by tools.adapt.
    """
    return study.name_of(TrainSettings.of(config.train)) + (
        f"+bn={config.adapt.scheme or augmentation.STANDARD}" if "adapt" in config else ""
    )


def find(workdir: str | pathlib.Path) -> list[pathlib.Path]:
    """Lists the folders of the finished models in a workdir of train.py or overlap.py.

    Raises:
      FileNotFoundError: there is none.
    """
    workdir = pathlib.Path(workdir)
    folders = [workdir] if loop.finished(workdir) else _finished_models(workdir)
    if not folders:
        raise FileNotFoundError(f"expected a workdir with trained models, found none in {workdir}; run train.py first")
    return folders
