"""A workdir made of weights trained elsewhere: from then on the same as one of train.py."""

import contextlib
import pathlib
from collections.abc import Iterable

from flax import nnx
from ml_collections import ConfigDict

from models import torchvision
from runtime import distributed, files, workdirs
from runtime.log import log
from training import states
from training.checkpoint import Checkpoints, digest


def prepare(config: ConfigDict, weights: ConfigDict, workdir: pathlib.Path, free: Iterable[str] = ()) -> None:
    """Makes `workdir` that of a finished model with imported weights, unless it is that already.

    config.json names the file, its sha256 and the stride under `imported`: other weights in the
    same workdir are refused. final.json holds the number of classes.

    Args:
      config: of one model (`study.model_config`). Its training settings say nothing here, so its
        epochs become 0.
      weights: config.model with `checkpoint`, a file of torchvision's weights for its `name`, and
        `class_stride`; see `models.torchvision.load`.
      workdir: directory, made when missing.
      free: dotted keys of the config that may change later.

    Raises:
      ValueError, FileNotFoundError, RuntimeError: the weights cannot be read or do not fit the
        model.
      WorkdirError: `workdir` holds something else.
    """
    checkpoint = pathlib.Path(weights.checkpoint).expanduser()
    if not checkpoint.is_file():
        raise FileNotFoundError(f"expected a file of weights as config.model.checkpoint, found no file {checkpoint}")
    config.train.epochs = 0
    sha256 = files.sha256(checkpoint)
    config.imported = {"file": checkpoint.name, "sha256": sha256, "class_stride": weights.class_stride}
    done = workdirs.Workdir(workdir).exists("final.json")
    if not done and distributed.several():
        raise ValueError(
            f"expected {workdir} to hold the imported model already, for many processes to evaluate; make it with one"
        )
    if not done:  # before the workdir is touched: weights that do not fit leave nothing behind
        model, num_classes = read(config, checkpoint, weights.class_stride)
    with workdirs.open_workdir(workdir, config.to_dict(), free=free) as path:
        if done:
            return
        _, params, statistics = nnx.split(model, nnx.Param, ...)
        state = states.initial_state(params, statistics, states.make_optimizer(config.train, 1))
        with contextlib.closing(Checkpoints(path / "checkpoints")) as checkpoints:
            checkpoints.save(state)
        workdirs.write_final(path, step=0, digest=digest(state), num_classes=num_classes)
    log.info("Imported %s (%d classes, sha256 %s) into %s.", checkpoint, num_classes, sha256[:12], workdir)


def read(config: ConfigDict, path: pathlib.Path, class_stride: int = 1) -> tuple[nnx.Module, int]:
    """Reads (model, number of classes) of the network of `config` from a file of weights.

    Raises:
      ValueError, FileNotFoundError, RuntimeError: see `models.torchvision.load`.
    """
    return torchvision.load(config.model.name, path, class_stride=class_stride, **states.network_options(config))


def check_classes(directory: pathlib.Path, num_classes: int) -> None:
    """Checks that the model in `directory` has as many classes as the dataset.

    Raises:
      ValueError: it has another number.
    """
    final = workdirs.read_final(directory)
    of_model = final["num_classes"]
    if of_model != num_classes:
        stride = "; --config.model.class_stride=10, in a new workdir, keeps every tenth class (ImageNet-100)"
        raise ValueError(
            f"expected a dataset of {of_model} classes, as many as the model in {directory} has, found {num_classes}"
            + (stride if final["step"] == 0 else "")  # of an imported one
        )
