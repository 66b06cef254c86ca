"""Whether stored answers are those that this code, this model and these test images would give, without running a model.

A line `what: stored ..., here ...` for each mismatch, and a reason for what cannot be compared.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis import trained
from analysis.answers import Key, Record, read
from analysis.errors.reference import of_corruption
from analysis.overlap import study as overlap_study
from analysis.overlap.score import overlap_matrix
from analysis.selection import algorithm
from corruptions.core import registry
from corruptions.core.keys import prng
from corruptions.core.origin import UNKNOWN, Origin, differences, make, same_code
from corruptions.scoring.conditions import CLEAN, Condition, expand
from corruptions.scoring.results import Answered
from data import Dataset
from data.corrupted import open_corrupted
from data.dataset import same_images
from evaluation import shown
from runtime import settings
from runtime.workdirs import read_config
from training import study

REMEDY = "evaluate it in another workdir"
Data = Callable[[], Dataset | None]
"""Loads the dataset of a workdir; None where it is not at hand."""


@dataclasses.dataclass
class Compared:
    """Lines of what differs, and reasons of what could not be compared."""

    wrong: list[str] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)


def dataset_of(workdir: pathlib.Path) -> Dataset | None:
    """Loads the dataset that the settings of a workdir name, with the training images that are mixed in; None without it."""
    try:
        config = ConfigDict(read_config(workdir))
        return study.load_dataset(config, bool(config.train.get("mix_in", {}).get("name")))
    except (OSError, ValueError, RuntimeError, AttributeError, KeyError):  # files elsewhere; a workdir of `evaluate`
        return None


def training_data(record: Mapping[str, Any], dataset: Data) -> Compared:
    """Compares data.json with the training images at hand."""
    if (here := dataset()) is None:
        return Compared(unknown=["the training images are not at hand"])
    before, now = study.other_images(record, here.provenance)
    return Compared(settings.differences(before, now))


def answers(by_model: Mapping[Key, Answered], record: Record, workdir: pathlib.Path, dataset: Data) -> Compared:
    """Compares answers with the models of their workdir, with the test images, and with the corruption of this code."""
    found = Compared()
    if record.classifiers:
        caller = "its images and its classifier are the caller's: the same call of evaluate compares them"
        found.unknown.append(caller)
        if record.corruption != CLEAN:
            _corruption(found, record, workdir, None)
        return found
    for name, seed in by_model:
        before, now = record.models.get((name, seed)), trained.trained_digest(workdir, name, seed)
        if trained.is_stale(before, now):
            found.wrong.append(f"expected answers of {name}, seed {seed}, as it is, found an earlier model's")
        elif not (before and now):
            found.unknown.append("their model is not in this workdir")
    if record.about.get("stored"):
        _stored(found, record)
        return found
    if "images" not in record.shown or "superclasses" in record.shown:
        found.unknown.append("their test images are not those of config.json")
        return found
    of_images = _images(record, here := dataset())
    found.wrong += of_images.wrong
    found.unknown += of_images.unknown
    if record.corruption != CLEAN:
        _corruption(found, record, workdir, None if of_images.wrong or of_images.unknown else here)
    return found


def _stored(found, record):
    """Compares answers to a corrupted dataset on disk with its files, as far as settings and digests tell."""
    before = record.shown["source"]
    try:
        condition = Condition(record.corruption, str(record.severity))
        now = shown.stored_source(open_corrupted(before["source"]), condition)
    except (OSError, ValueError, KeyError) as error:
        found.unknown.append(f"their corrupted dataset is not at hand ({error})")
        return
    found.wrong += settings.differences({"source": before}, {"source": now})


def _images(record, dataset):
    found = Compared()
    if dataset is None:
        found.unknown.append("their test images are not at hand")
        return found
    now, before = dataset.provenance.get("test", {}), record.shown["images"]
    stored = {"sha256": {name: value for name, value in before.items() if name != "listed"}}
    if "drawn" in record.about:
        stored["drawn"] = record.about["drawn"]
    if not before:
        found.unknown.append("an earlier version recorded no digest of their test images")
    elif not same_images(stored, now):
        found.wrong += settings.differences({"images": stored["sha256"]}, {"images": shown.digests_of(dataset)})
    elif "listed" in before:
        found.unknown.append("their test images are chosen by a list, which config.json does not name")
    elif record.number != len(dataset.test):
        found.wrong.append(f"number: stored {record.number}, here {len(dataset.test)}")
    return found


def _corruption(found, record, workdir, dataset):
    """Compares what a corruption is: version, table, options of the study, generator, and its code by a probe."""
    try:
        registry.get(record.corruption)
    except ValueError:
        modules = ",".join(record.about.get("imports", ())) or "MODULE"
        found.unknown.append(f"{record.corruption} is not registered: give --imports={modules}")
        return
    made, imports = Origin.from_json(record.origin), record.about.get("imports", ())
    own = make(corruption=record.corruption, imports=imports)
    lines = differences(made, own, remedy=REMEDY)
    if not any(line.startswith(("generator", "partitionable")) for line in lines):
        lines += settings.differences({"generator": record.shown.get("prng", prng())}, {"generator": prng()})
    options, levels = record.shown.get("options", {}), record.levels
    if known := record.about.get("described"):
        shape = tuple(record.about.get("image_shape", ()))
        here = of_corruption(record.corruption, shape, options, levels)
        lines += settings.differences(known, here, free=("version",))  # of the origin
    if (given := _study_options(workdir, record)) is not None:
        lines += settings.differences({"options": options}, {"options": given})
    found.wrong += lines
    if lines or made.probe in (UNKNOWN, None):
        if not lines:
            found.unknown.append("an earlier version recorded no code")
        return
    if dataset is not None:
        found.wrong += differences(made, own, functools.partial(shown.probe, record, dataset.test, made.probe), REMEDY)
    elif not same_code(own, made.code):
        found.unknown.append("the code changed since, and no test images are at hand to probe it")


def _study_options(workdir: pathlib.Path, record: Record) -> Any:
    """The options that the settings of a study give a corruption; None where they do not decide."""
    try:
        config = read_config(workdir)
        of_study = record.corruption in registry_names(config["study"]["corruptions"]) and record.levels is None
        return config["train"]["corruption_options"].get(record.corruption, {}) if of_study else None
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def registry_names(asked: Any) -> tuple[str, ...]:
    """Lists the corruptions of names and benchmarks; none where some are unknown."""
    try:
        return tuple(expand(asked))
    except ValueError:
        return ()


def selection(content: Mapping[str, Any], workdir: pathlib.Path) -> Compared:
    """Compares a benchmark.json with what Algorithm 1 selects from the answers of its workdir."""
    try:
        known = read(workdir)
        names = overlap_study.corruptions_of(workdir, known)
        bits, _ = known.study(names, overlap_study.seeds_of(workdir))
    except (OSError, ValueError) as error:
        return Compared(unknown=[f"the overlaps it was selected from are not in this workdir ({error})"])
    overlap = overlap_matrix(bits.mean(axis=-1), names=names, number=bits.shape[-1])
    if np.isnan(overlap.overlap).all():
        return Compared(unknown=["no overlap is defined"])
    threshold, strict = float(content.get("threshold", 0.1)), bool(content.get("strict"))
    found = algorithm.select(overlap.overlap, overlap.names, threshold, strict, overlap.unclipped)
    stored, now = (json.dumps(sorted(members)) for members in (content.get("members", ()), found.members))
    return Compared([] if stored == now else [f"members: stored {stored}, here {now}"])
