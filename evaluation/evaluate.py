"""Every model under every condition; answers that the workdir holds are not evaluated again.

Conditions, per-image results, their files and origins are those of `corruptions.scoring`. Its `evaluate` stands apart: it asks one
function that is known by its answers; here each network has a digest, many are asked about one corrupted set that stays split over a
mesh of devices, on one host or several, and a network may be prepared for each condition.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis import answers, trained
from analysis.answers import SCALED, Answered, Key
from corruptions import augment, cbar
from corruptions.core.origin import UNKNOWN, Origin
from corruptions.scoring.conditions import Condition
from evaluation import bound, correctness
from evaluation.correctness import Ensemble, Model
from evaluation.shown import Images, probe, same_images
from runtime import artifacts, files, settings
from runtime.log import bar, log
from runtime.settings import WorkdirError
from runtime.workdirs import Workdir
from training import augmentation
from training.checkpoints import digest

ByCondition = dict[Condition, dict[Key, np.ndarray]]
"""{condition: {(model, seed): bool [N], which images are answered correctly}}."""
Ask = Callable[[dict[Key, Any], Images], dict[Key, Answered]]
"""From models and images under a condition to {(name, seed): `Answered`}."""
Prepare = Callable[[Model, Images], Model]
"""Gives the model for a condition from its images, such as one adapted to them."""
_LISTED = 10  # conditions that an error names


class Evaluation:
    """Models under conditions of some test images, and the answers that a workdir holds.

    Making it reads and checks these answers: several are made before the first of them runs. Of many processes only
    process 0 reads and writes files.

    Args:
      models: {(name, seed): model}; (graphdef, state) unless `ask` takes others.
      shown: the test images; all models see the same.
      conditions: under which they are shown.
      workdir: directory that keeps the answers, each condition as soon as it is done.
      ask: asks some of the models; see `networks`.
      model_digests: {(name, seed): digest of the model}; None computes them.
      temperatures: {(name, seed): temperature that `ask` scales its answers with, too}.

    Raises:
      WorkdirError: answers belong to other images than their record says; names the conditions and the differences.
      DamagedFileError: a file of answers is damaged or was edited.
    """

    def __init__(
        self,
        models: Mapping[Key, Any],
        shown: Images,
        conditions: Iterable[Condition],
        workdir: str | os.PathLike,
        ask: Ask,
        model_digests: Mapping[Key, str] | None = None,
        temperatures: Mapping[Key, float] | None = None,
    ):
        self._models, self._shown, self._ask = models, shown, ask
        self._workdir = Workdir(workdir).folder(answers.FOLDER)
        self._records = {condition: shown.under(condition).record for condition in conditions}
        self._digests = digests(models) if model_digests is None else model_digests
        self._temperatures = temperatures or {}
        self._changed: set[Condition] = set()  # whose answers are to images that other code corrupted
        self._known = self._read()

    def run(self, progress: bool = True) -> ByCondition:
        """Evaluates missing conditions and returns the answers of the models to all conditions."""
        for condition in bar("condition", self._known) if progress else self._known:
            known = self._known[condition]
            if missing := {key: model for key, model in self._models.items() if key not in known}:
                shown = self._shown.under(condition)
                found = self._ask(missing, shown)
                self._write(condition, found, shown.origin)
                known |= {key: answered.correct for key, answered in found.items()}
        return {c: {key: known[key] for key in self._models} for c, known in self._known.items()}

    def _read(self) -> ByCondition:
        """Reads the stored answers; a condition that was not evaluated has none.

        Answers of a model that was trained again since, or to images that are corrupted otherwise now, are left out with
        a warning, and so are those that lack the confidence at a temperature.
        """
        found, other, drawn, accepted = {}, [], {}, self._workdir.for_all(answers.accepted, self._workdir)
        before_now = dict(accepted)
        for condition, record in self._records.items():
            content, found[condition] = self._workdir.for_all(self._content, record), {}
            if content is None:
                continue
            by_model, before = answers.read_answered(self._path(record), content=content)
            asked = {**record.shown, "number": record.number}
            if before.shown.get("images") == {}:  # of a user's dataset, before a sample of its images was taken
                asked["images"] = {}
            elif "images" in asked and same_images(before, record):  # drawn ones, whose lowest bits may differ
                drawn = asked["images"] = before.shown["images"]
            if lines := settings.differences({**before.shown, "number": before.number}, asked):
                other.append(f"{record.stem}.npz: {'; '.join(lines)}")
            elif self._is_corrupted_otherwise(condition, record, before, accepted):
                self._changed.add(condition)
                continue
            for key, answered in by_model.items():
                if not self._is_stale(key, before) and self._is_scaled(key, answered, before):
                    found[condition][key] = answered.correct
        if drawn:  # all answers of a folder name its images alike
            self._records = {c: r._replace(shown=r.shown | {"images": drawn}) for c, r in self._records.items()}
        if other:
            head = (
                f"{self._workdir} holds answers to other images under {len(other)} of {len(found)} conditions; "
                "use the same settings or another workdir, or remove these files to evaluate them again:"
            )
            more = [f"... and {len(other) - _LISTED} more"] if len(other) > _LISTED else []
            raise WorkdirError("\n  ".join([head, *other[:_LISTED], *more]))
        if self._changed and self._models:
            log.warning(
                "%s holds answers under %d conditions to images that the code corrupts otherwise now (the first: %s): they are "
                "evaluated again, and answers of models that are not asked for are dropped there.",
                *(self._workdir, len(self._changed), next(c for c in found if c in self._changed)),
            )
        if accepted != before_now and self._workdir.writes:
            files.write_json(self._workdir / answers.ACCEPTED, accepted, sort_keys=True)
        return found

    def _is_corrupted_otherwise(self, condition, record, before, accepted):
        shown = self._shown.under(condition)
        if not before.origin or (now := shown.origin) is None:
            return False
        stored, again = Origin.from_json(before.origin), functools.partial(probe, record, shown.split)
        name, part = (
            artifacts.digest([record.stem, before.origin]),
            bound.Part(now, again),
        )
        if bound.otherwise(before.origin, part, accepted.get(name)):
            return True
        if now.code not in (UNKNOWN, stored.code):
            accepted[name] = now.code
        return False

    def _write(self, condition: Condition, by_model: Mapping[Key, Answered], origin: Origin | None) -> None:
        """Adds answers to the stored answers that are not stale."""
        if not self._workdir.writes:
            return
        record, revisions = self._records[condition], dict.fromkeys(by_model, artifacts.git_revision())
        models, temperatures, path = self._digests, self._temperatures, self._path(record)
        made = origin.to_json() if origin else {}
        if path.exists() and condition not in self._changed:
            known, before = answers.read_answered(path)
            stale = [key for key in known if trained.is_stale(before.models.get(key), models.get(key))]
            by_model = {key: known[key] for key in known if key not in stale} | dict(by_model)
            models, temperatures = {**before.models, **models}, {**before.temperatures, **temperatures}
            revisions, made = {**before.revisions, **revisions}, before.origin or made
        serial = answers.next_serial(path.parent, record) or 1
        by_key = {"models": models, "temperatures": temperatures, "revisions": revisions}
        record = record._replace(**by_key, serial=serial, origin=made)
        answers.write(path.parent, by_model, record)

    def _path(self, record):
        return self._workdir / f"{record.stem}.npz"

    def _content(self, record):
        """Returns the bytes of a file, None without one; of several sets of levels it becomes the one that tables take."""
        path = self._path(record)
        if not path.exists():
            return None
        if serial := answers.next_serial(path.parent, record):
            by_model, before = answers.read_answered(path)
            if before.serial < serial:
                answers.write(path.parent, by_model, before._replace(serial=serial))
        return path.read_bytes()

    def _is_stale(self, key, before):
        stale = trained.is_stale(before.models.get(key), self._digests.get(key))
        if stale:
            text = "%s holds answers of %s, seed %d, from before it was trained again: it is evaluated again."
            log.warning(text, self._path(before), *key)
        return stale

    def _is_scaled(self, key, answered, before):
        asked = self._temperatures.get(key)
        return asked is None or (SCALED in answered.confidence and before.temperatures.get(key) == asked)


def networks(prepare: Prepare | None = None, enhance: str = "", temperatures: Mapping[Key, float] | None = None) -> Ask:
    """Makes the `ask` of an `Evaluation` of networks and ensembles.

    Args:
      prepare: for each network and condition; None does not change networks.
      enhance: enhancement that the models work with (`corruptions.enhance`); their names tell which, see `marked`.
      temperatures: {(name, seed): temperature that its answers are scaled with, too}.
    """

    def ask(models, shown):
        return correctness.ask(prepared(models, shown, prepare), shown, enhance, temperatures)

    return ask


def evaluate_models(
    models: Mapping[Key, Model],
    shown: Images,
    conditions: Iterable[Condition],
    workdir: str | os.PathLike,
    enhance: str = "",
    temperatures: Mapping[Key, float] | None = None,
) -> ByCondition:
    """Evaluates networks under conditions at once; see `Evaluation` and `networks`."""
    asked = networks(enhance=enhance, temperatures=temperatures)
    return Evaluation(models, shown, conditions, workdir, asked, temperatures=temperatures).run()


def check_answers(shown: Images, conditions: Iterable[Condition], workdir: str | os.PathLike) -> None:
    """Checks the answers that a workdir holds, before models are trained; raises as `Evaluation`."""
    Evaluation({}, shown, conditions, workdir, networks())


def marked(models: Mapping[Key, Model], label: str) -> dict[Key, Model]:
    """Appends the label of a change at test time to the names of models: MODEL+label."""
    return {(f"{name}+{label}", seed): model for (name, seed), model in models.items()}


def ensembles(models: Mapping[Key, Model]) -> dict[Key, Ensemble]:
    """Makes an ensemble over the seeds of each training that has several: {(NAME+ensemble=0.1.2, 0): ensemble}."""
    seeds: dict[str, list[int]] = {}
    for name, seed in sorted(models):
        seeds.setdefault(name, []).append(seed)
    return {
        (trained.ensemble_name(name, of_one), 0): Ensemble(tuple(models[name, seed] for seed in of_one))
        for name, of_one in seeds.items()
        if len(of_one) > 1
    }


def prepared(
    models: Mapping[Key, Model | Ensemble], shown: Images, prepare: Prepare | None
) -> Mapping[Key, Model | Ensemble]:
    """Prepares every network for images, once; see `networks`."""
    if prepare is None:
        return models
    return _mapped(models, lambda model: prepare(model, shown), lambda members: Ensemble(tuple(members)))


def digests(models: Mapping[Key, Model | Ensemble]) -> dict[Key, str]:
    """Computes the digest of the state of each model, as in final.json, and of each ensemble: {(name, seed): digest}."""
    return _mapped(models, lambda model: digest(model[1]), artifacts.digest)


def _mapped(models, of_network, of_members):
    """Maps every network, once, and every ensemble by the list of its mapped members."""
    once: dict[int, Any] = {}

    def of_one(model):
        if isinstance(model, Ensemble):
            return of_members(list(map(of_one, model.members)))
        if id(model) not in once:
            once[id(model)] = of_network(model)
        return once[id(model)]

    return {key: of_one(model) for key, model in models.items()}


# Warnings about conditions.


def warn_of_tables(names: Iterable[str], shape: Sequence[int]) -> None:
    """Warns of C-bar benchmarks whose levels were selected from ranges made for images of another size than (H, W, 3).

    Names that are no such benchmark are passed over. It is for commands that use those levels: a study's own corruptions
    and a calibration take all levels, of the ranges for their images, and `corruptions.write` takes a benchmark's ranges
    together with its levels.
    """
    for name in names:
        made, used = cbar.BENCHMARK_TABLE.get(name), cbar.table_for(shape)
        if made and made != used:
            log.warning(
                "%s was selected from the ranges %r; images of %dx%d use the ranges %r.", name, made, *shape[:2], used
            )


def warn_of_coincidence(recipe: ConfigDict, names: Iterable[str]) -> None:
    """Warns of corruptions that models have met in training, as operations of the scheme of their config.train."""
    if not recipe.get("scheme"):
        return
    try:
        scheme = augmentation.scheme_of(recipe.scheme, recipe.get("transforms", ""))
    except (ValueError, FileNotFoundError) as error:  # stored transforms that are gone by now
        log.warning("Whether %s holds some of the corruptions cannot be told: %s", recipe.scheme, error)
        return
    for operation, corruption in augment.coinciding(scheme, names):
        text = "%s is close to the operation %s of %s, which these models were trained with."
        log.warning(text, corruption, operation, scheme.name)
