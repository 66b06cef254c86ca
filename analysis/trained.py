"""The digests of the trained models of a workdir, by which answers and what follows from them know their models.

A model's answers may lie in a folder of its workdir; the name of the model tells its training and what changed it at test
time. Needs no JAX.
"""

import os
import pathlib
import re
from collections.abc import Iterable

from runtime import artifacts, workdirs

_OF_ANSWERS = ("stored", "superclasses")  # folders in a workdir, of folders with answers of their own
_ENSEMBLE = "+ensemble="
_AT_TEST_TIME = re.compile(r"\+(bn=test(:.*)?|enhance=[^+]+)$")


def ensemble_name(name: str, seeds: Iterable[int]) -> str:
    """Names the ensemble of the models of a training with these seeds."""
    return f"{name}{_ENSEMBLE}{'.'.join(map(str, seeds))}"


def is_stale(before: str | None, now: str | None) -> bool:
    """Compares the digest of the model that gave the answers with the digest of the model now; an unknown digest
    differs from none.
    """
    return bool(before and now and before != now)


def trained_digests(workdir: str | os.PathLike, keys: Iterable[tuple[str, int]]) -> set[str]:
    """Reads the digests of models as `trained_digest` does."""
    return {trained_digest(workdir, *key) for key in dict.fromkeys(keys)}


def trained_digest(workdir: str | os.PathLike, name: str, seed: int) -> str:
    """Reads the digest of a model from its final.json; "" if the workdir, its own or its study's, holds no such model.

    The folders `stored/NAME` and `superclasses/NAME` of a workdir hold answers of its models.
    In its name, `+bn=test` and `+enhance=NAME`, which name a change at test time, do not count. A model
    `NAME+train=ENHANCEMENT` lies in the folder `train=ENHANCEMENT` of its study. An ensemble has the digest of its
    members' digests. Raises DamagedFileError where final.json is damaged or was edited.
    """
    workdir = pathlib.Path(workdir)
    name, ensemble, seeds = name.partition(_ENSEMBLE)
    if ensemble:
        members = [trained_digest(workdir, name, int(of_member)) for of_member in seeds.split(".")]
        return artifacts.digest(members) if all(members) else ""
    training, _, enhanced = _AT_TEST_TIME.sub("", name).partition(f"+{workdirs.TRAINED}")
    for home in (workdir, workdir.parent.parent) if workdir.parent.name in _OF_ANSWERS else (workdir,):
        study = home / f"{workdirs.TRAINED}{enhanced}" if enhanced else home
        for folder in (home, study / "models" / training.replace("/", ".") / f"seed{seed}"):
            if final := workdirs.final_of(folder):
                return final["digest"]
    return ""
