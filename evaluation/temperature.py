"""Temperatures of trained models and ensembles, fitted on training images that no model was trained on.

The settings of the training, config.dataset.train_limit = L, leave images over: the L that models train on are a prefix of
the class-balanced order of `data.balanced_prefix`, and the next config.eval.temperature ones are held out. WORKDIR/
temperatures.json keeps the temperatures, bound to the models and to these images.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from analysis.answers import Key, name_of
from analysis.confidence import temperature
from data import Split, balanced_prefix
from data.dataset import cut, describe
from evaluation import correctness
from evaluation.correctness import Ensemble, Model
from evaluation.evaluate import Prepare, digests, ensembles, prepared
from evaluation.shown import Shown
from runtime import artifacts, distributed
from runtime.log import log
from runtime.settings import SettingsError
from runtime.workdirs import Workdir
from training import study

FILE = "temperatures.json"
_REMEDY = "remove it to fit the temperatures again"


def asked_for(
    models: Mapping[Key, Model],
    config: ConfigDict,
    workdir: Workdir,
    shown: Shown | None,
    prepare: Prepare | None = None,
) -> tuple[dict[Key, Model | Ensemble], dict[Key, float]]:
    """Adds the ensembles of config.eval.ensemble and the temperatures of config.eval.temperature.

    Args:
      models: {(name, seed): network}.
      config: config of the models and of the evaluation.
      workdir: keeps the temperatures.
      shown: the images of `held_out`, on which temperatures are fitted.
      prepare: devices that classify; see `evaluation.evaluate.networks`.

    Returns:
      (models and ensembles over seeds, temperature of each); without the setting no ensembles, no temperatures.

    Raises:
      DamagedFileError: the file of temperatures is damaged or was edited.
    """
    every = dict(models) | (ensembles(models) if config.eval.ensemble else {})
    if shown is None:
        return every, {}
    return every, _fitted(every, shown, workdir, config.eval.enhance, prepare)


def check(config: ConfigDict) -> None:
    """Refuses (SettingsError) config.eval.temperature for models whose training left no known images over."""
    number = config.eval.temperature
    if number and "imported" in config:
        raise SettingsError(
            "config.eval.temperature: expected models that were trained here, found imported weights, whose training images "
            "are not known"
        )
    if number and not config.dataset.train_limit:
        raise SettingsError(
            "config.eval.temperature: expected models trained with config.dataset.train_limit, which leaves "
            f"{number} training images over, found models that were trained on all of them"
        )


def held_out(config: ConfigDict, mesh: Mesh) -> Shown | None:
    """Shows the clean training images after the images that the models of `config` were trained on; None without
    config.eval.temperature.

    Raises:
      SettingsError: there are too few, or it is not known which images the models saw.
    """
    check(config)
    limit, number = config.dataset.train_limit, config.eval.temperature
    if not number:
        return None
    larger = ConfigDict(config.to_dict())
    larger.dataset.update({"train_limit": limit + number, "test_limit": 1})
    dataset = study.load_dataset(larger)
    train = dataset.train
    if damaged := dataset.provenance["train"].get("damaged"):
        raise SettingsError(
            f"config.eval.temperature: expected training images that can all be read, found {len(damaged)} that cannot, and "
            f"so none known to be unseen; remove {damaged[0]} and train again"
        )
    if len(train) < limit + number:
        raise SettingsError(
            f"config.eval.temperature: expected {number} training images beyond the {limit} of config.dataset.train_limit, "
            f"found {len(train) - limit}"
        )
    rest = np.setdiff1d(np.arange(len(train)), balanced_prefix(train.labels, limit))
    images = np.ascontiguousarray(cut(train, rest, dataset.image_shape[0]))
    split = Split(images, np.asarray(train.labels)[rest], np.asarray(train.index)[rest])
    return Shown(split, mesh, config.eval.batch_size, digests=describe(split)["sha256"])


def _fitted(models, shown, workdir, enhance, prepare):
    """Fits the temperatures that the workdir lacks, and stores them there: {(name, seed): T}."""
    before = workdir.for_all(read, workdir / FILE) if workdir.exists(FILE) else {"images": {}, "models": {}}
    before = before["models"] if before["images"] == dict(shown.digests) else {}  # {model|seed: entry}
    now = digests(models)
    fits = {key: before[name_of(key)] for key in models if before.get(name_of(key), {}).get("model") == now[key]}
    missing = {key: model for key, model in models.items() if key not in fits}
    if missing:
        scores: dict[Key, list[np.ndarray]] = {key: [] for key in missing}
        for key, logits, _, number in correctness.logits_of(prepared(missing, shown, prepare), shown, enhance):
            scores[key].append(distributed.fetch(logits).reshape(-1, logits.shape[-1])[:number])
        for key, parts in scores.items():
            found = temperature.fit(np.concatenate(parts), np.asarray(shown.split.labels))
            if found.at_bound:
                text = "%s, seed %d: no finite temperature is best; %g is the end of the range."
                log.warning(text, *key, found.value)
            fits[key] = {"model": now[key], **found._asdict()}
        if workdir.writes:
            record = {"images": dict(shown.digests), "models": before | {name_of(key): fits[key] for key in missing}}
            artifacts.write_record(workdir / FILE, record)
    return {key: fits[key]["value"] for key in models}


def read(path: str | os.PathLike) -> dict[str, Any]:
    """Reads a file of temperatures: {"images": digests, "models": {model|seed: {"model": digest, "value": T ...}}}.

    Raises:
      FileNotFoundError, DamagedFileError: there is none, or it is damaged or was edited.
    """
    entry = {"model": str, "value": float, "at_bound": bool, "before": float, "after": float}
    return artifacts.read_record(path, _REMEDY, shape={"images": {str: str}, "models": {str: entry}})
