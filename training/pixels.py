"""The corruptions of a training are those that it began with: a model of two codes is nobody's model.

The version of each corruption is recorded in `corruptions.json` of the run, and of a user's corruption a probe of some images,
see `corruptions.core.origin`. Runs of earlier versions recorded nothing, and are taken.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from corruptions.core import origin
from corruptions.core.code import is_of_user
from corruptions.core.origin import Origin, Probe
from runtime import artifacts
from runtime.settings import WorkdirError
from training import augmentation
from training.sections import TrainSettings

FILE = "corruptions.json"
_IMAGES = 16  # which show several severities


def bind(workdir: pathlib.Path, train: TrainSettings, shape: Sequence[int], begins: bool) -> None:
    """Records the corruptions of a run that begins, and compares those of one that began before.

    Args:
      workdir: folder of the run.
      train: settings of the training.
      shape: that of its images, (H, W, 3).
      begins: whether the run has no step yet.

    Raises:
      WorkdirError: a corruption gives other pixels than those that the run was trained with.
    """
    path = workdir / FILE
    if not begins and not path.exists():
        return
    names = augmentation.members(train.corruption)
    now = {name: origin.make(corruption=name) for name in names}
    probes = {
        name: functools.partial(_probe, name, tuple(shape), train.corruption_options.get(name, {})) for name in names
    }
    if begins:
        given = {name: _with_probe(made, probes[name]).to_json() for name, made in now.items()}
        artifacts.write_record(path, {"corruptions": given})
        return
    remedy = f"remove {workdir} to train it again"
    stored = artifacts.read_record(path, f"restore it, or {remedy}", shape={"corruptions": {str: dict}})["corruptions"]
    if sorted(stored) != sorted(names):
        known, wanted = (", ".join(sorted(listed)) or "none" for listed in (stored, names))
        raise WorkdirError(
            f"{workdir} was trained with other corruptions: stored {known}, requested {wanted}; {remedy}"
        )
    for name, old in ((name, Origin.from_json(stored[name])) for name in names):
        if lines := origin.differences(old, now[name], probes[name], remedy):
            raise WorkdirError(f"{workdir} was trained with other pixels: {lines[0]}")


def _with_probe(made: Origin, probe: Any) -> Origin:
    return dataclasses.replace(made, probe=probe()) if is_of_user(made.corruption) else made


def _probe(name: str, shape: Sequence[int], options: Any) -> Probe:
    images = np.random.default_rng(0).integers(0, 256, (_IMAGES, *shape), dtype=np.uint8)
    return origin.probe(name, images, None, key=jax.random.key(0), index=np.arange(_IMAGES), options=options)
