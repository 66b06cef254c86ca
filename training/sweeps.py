"""The members of a sweep: every combination of some settings, its workdir and its commands."""

import itertools
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ml_collections import ConfigDict

from runtime import bindings, files
from runtime.schema import SettingsError
from training import cli, rules


class Member(NamedTuple):
    """A combination of settings.

    Attributes:
      folder: workdir of its commands.
      setting: the combination without the seed, as tables call it.
      commands: the arguments of each command, but for the workdir.
      settings: digest of all settings, those of the config file too.
    """

    folder: pathlib.Path
    setting: str
    commands: list[list[str]]
    settings: str

    def beside(self, ending: str) -> pathlib.Path:
        """Names a file beside the workdir, in which its commands alone write."""
        return self.folder.parent / f"{self.folder.name}{ending}"

    def finished(self) -> bool:
        """Tells whether these commands ended well with these settings, and left their workdir."""
        record = self.beside(".json")
        return self.folder.is_dir() and record.is_file() and files.read_json(record) == self._record()

    def finish(self) -> None:
        """Records that the commands ended well."""
        files.write_json(self.beside(".json"), self._record())

    def _record(self):
        return {"commands": self.commands, "settings": self.settings}


def read_swept(texts: Sequence[str]) -> dict[str, list[str]]:
    """Reads settings with their values, `KEY=VALUE,VALUE` each: {key: texts of the values}.

    Raises:
      SettingsError: text of another form, or a key twice.
    """
    swept: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals:
            raise SettingsError(f"expected --sweep KEY=VALUE,VALUE, found {text!r}")
        if key in swept:
            raise SettingsError(f"expected every setting in one --sweep, found {key} in two")
        swept[key] = re.split(r",(?![^(\[]*[)\]])", values)  # at commas outside of brackets
    return swept


def list_members(
    config: ConfigDict,
    given: Sequence[str],
    swept: Mapping[str, Sequence[str]],
    scripts: Sequence[str],
    workdir: pathlib.Path,
) -> list[Member]:
    """Lists all combinations, the values of the last setting one after another, each checked.

    Args:
      config: without what is swept.
      given: the flags that it was made of, see `cli.given_settings`.
      swept: see `read_swept`.
      scripts: what each combination runs: `train`, `eval`, `overlap`.
      workdir: of the sweep.

    Raises:
      SettingsError: a setting that does not exist or is given besides, a value that is not taken, or
        a combination twice.
    """
    study = "overlap" in scripts
    if study and "seed" in swept:
        raise SettingsError(
            "expected no seed in --sweep of overlap, which trains all seeds of a study: --config.study.seeds=(0,1,2)"
        )
    if twice := [key for key in swept if any(flag.startswith(f"--config.{key}=") for flag in given)]:
        raise SettingsError(f"expected config.{twice[0]} from --sweep or from a flag of its own, found both")
    members = []
    for texts in itertools.product(*swept.values()):
        settings = cli.overridden(config, dict(zip(swept, texts)))
        rules.check(settings)
        values = rules.flat(settings)
        arguments = [*given, *(cli.argument(key, values[key]) for key in swept)]
        names = [_folder_name(key, values[key]) for key in sorted(swept) if key != "seed"]
        seed = [] if study else [_folder_name("seed", settings.seed)]
        setting = "/".join(names) or _as_folder(workdir.resolve().name)
        commands = [[f"{script}.py", *arguments] for script in scripts]
        members.append(Member(workdir.joinpath(*names, *seed), setting, commands, bindings.digest(values)))
    folders = [member.folder for member in members]
    if repeated := [folder for folder in folders if folders.count(folder) > 1]:
        raise SettingsError(f"expected every combination of settings once, found {repeated[0]} again")
    return members


def _folder_name(key, value):
    text = "+".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return _as_folder(f"{key}={text}")


def _as_folder(text):
    """Spells text so that neither shells nor tables have to quote it."""
    return re.sub(r"[^\w.=+-]+", "_", text.replace("/", "."))
