"""Trains with every combination of some settings, one after another, and tabulates the errors.

    python -m tools.sweep --config=configs/aug.py:noc/border --workdir=runs/rates \\
        --sweep seed=0,1,2 --sweep train.learning_rate=.05,.1

--sweep KEY=VALUE,VALUE names a setting of the config and its values; tuples stand in brackets:
train.milestones=(20,30),(10,20). All combinations are checked before the first one starts.

    WORKDIR/train.learning_rate=0.05/seed=0         a workdir of train.py
    WORKDIR/train.learning_rate=0.05/seed=0.log     output of its commands
    WORKDIR/train.learning_rate=0.05/seed=0.json    the commands that ended well
    WORKDIR/table.md, .csv, .tex                    errors of each setting: mean, standard error, deviation over seeds

--command=train+eval evaluates each model under config.eval as well; --command=overlap runs a study for each setting,
over its own config.study.seeds. A member of the sweep that fails is named and the others run. Given again, the command
runs the members that are not finished: failed, stopped or new ones, and those whose command or settings have changed. A
member whose workdir another process holds is named and left to it; the exit status is then 75, where none failed.

--print=commands, --print=slurm and --print=skypilot run nothing: they print the members that are not finished as a line
each, as a SLURM file with a task each, or as a YAML file for SkyPilot with a job each (with a --workdir in a bucket).
--launch=slurm starts a job for each through submitit, and --launch=local starts all of them at once on this machine and
waits; where this command is stopped, they save their state and end. --job timeout_min=120 --job gpus_per_node=1 is what a
job needs. When all jobs have ended, the command without --print and --launch writes the table.
"""

from runtime import command  # isort: skip

import itertools
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import jax
import numpy as np
from absl import app, flags
from ml_collections import ConfigDict

from analysis.errors import joint
from analysis.errors.joint import Joint
from analysis.errors.reference import LABEL, NONE
from analysis.errors.summary import summarise
from analysis.frames import CLEAN
from corruptions.scoring.values import Value
from runtime import artifacts, files, jobs
from runtime.artifacts import summary
from runtime.files import read_json
from runtime.log import log
from runtime.settings import SettingsError, WorkdirError, flatten
from runtime.workdirs import final_of, read_config
from training import cli

_HELD = command.IN_USE
_STOPPED = (130, 143, -signal.SIGINT, -signal.SIGTERM)  # exit statuses after Ctrl-C or SIGTERM
_CLEAN = (CLEAN, NONE, "mean_error")
_OF_CLEAN = {"accuracy": float, "standard_error": float, "model": str}
_OF_PROVENANCE = {"device": str, "git_revision": str}


class Member(NamedTuple):
    """A combination of settings."""

    folder: pathlib.Path  # workdir of its commands
    setting: str  # name of the combination in tables, without the seed
    commands: list[list[str]]  # arguments of each command, without the workdir
    settings: str  # digest of all settings, the config file's too
    swept: dict[str, Any]  # {key: value} of the swept settings

    def beside(self, ending: str) -> pathlib.Path:
        """Names a file beside the workdir, in which only its commands write."""
        return self.folder.parent / f"{self.folder.name}{ending}"

    def finished(self) -> bool:
        """Returns True if the commands ended well with these settings and left their workdir."""
        record = self.beside(".json")
        if not (self.folder.is_dir() and record.is_file() and read_json(record) == self._record()):
            return False
        config = flatten(read_config(self.folder))
        for key, value in json.loads(json.dumps(self.swept)).items():
            # Names have several spellings.
            if isinstance(value, int | float | list) and config.get(key, value) != value:
                raise WorkdirError(
                    f"expected a workdir with {key} {value!r}, found {config[key]!r} in {self.folder}; remove it (a copy "
                    "of another member?) and give the command again"
                )
        return True

    def finish(self) -> None:
        """Records that the commands ended well."""
        files.write_json(self.beside(".json"), self._record())

    def _record(self):
        return {"commands": self.commands, "settings": self.settings}

    def command_lines(self) -> list[list[str]]:
        """Lists its commands, each from the script's name to the workdir."""
        return [[*arguments, files.shown(f"--workdir={self.folder}")] for arguments in self.commands]


def read_swept(texts: Sequence[str]) -> dict[str, list[str]]:
    """Reads settings with their values, `KEY=VALUE,VALUE` each: {key: texts of the values}; refuses a key twice."""
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
      config, given: config without the swept settings, and the flags that it was made of (`cli.given_settings`).
      swept: see `read_swept`.
      scripts: commands of each combination: `train`, `eval`, `overlap`.
      workdir: folder of the sweep.

    Raises:
      SettingsError: a setting that does not exist or is given besides, a wrong value, or a combination twice.
    """
    study = "overlap" in scripts
    if study and "seed" in swept:
        raise SettingsError(
            "expected no seed in --sweep of overlap, which trains all seeds of a study: --config.study.seeds=(0,1,2)"
        )
    if twice := [key for key in swept if any(flag.startswith(f"--config.{key}=") for flag in given)]:
        raise SettingsError(f"expected config.{twice[0]} from --sweep or from a flag of its own, found both")
    members: dict[pathlib.Path, Member] = {}
    for texts in itertools.product(*swept.values()):
        settings = cli.overridden(config, dict(zip(swept, texts)))
        cli.check(settings)
        if elsewhere := [key for key in ("stored", "superclasses") if "eval" in scripts and settings.eval[key]]:
            raise SettingsError(
                f"expected no config.eval.{elsewhere[0]} in a sweep, whose table reads other answers; eval.py takes it"
            )
        values = cli.flat(settings)
        of_member = {key: values[key] for key in swept}
        arguments = [*given, *itertools.starmap(cli.argument, of_member.items())]
        names = [_folder_name(key, of_member[key]) for key in sorted(swept) if key != "seed"]
        setting = "/".join(names) or _as_folder(workdir.resolve().name)
        folder = workdir.joinpath(*names, *([] if study else [_folder_name("seed", settings.seed)]))
        if folder in members:
            raise SettingsError(f"expected every combination of settings once, found {folder} again")
        commands = [[f"{script}.py", *arguments] for script in scripts]
        members[folder] = Member(folder, setting, commands, artifacts.digest(values), of_member)
    return list(members.values())


def _folder_name(key, value):
    text = "+".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return _as_folder(f"{key}={text}")


def _as_folder(text):
    """Spells text so that neither shells nor tables have to quote it."""
    return re.sub(r"[^\w.=+-]+", "_", text.replace("/", "."))


def run(members: Sequence[Member], workdir: pathlib.Path) -> dict[str, int]:
    """Runs the unfinished members; returns {name: exit status} of each that failed or is held by another process.

    Raises:
      SystemExit, KeyboardInterrupt: SIGTERM or Ctrl-C came.
    """
    failed = {}
    for number, member in enumerate(members, 1):
        name, before = str(member.folder.relative_to(workdir)), member.finished()
        log.info("[%d/%d] %s%s", number, len(members), name, ": finished before" if before else "")
        status = 0 if before else execute(member)
        if status in _STOPPED:
            raise SystemExit(status if status > 0 else 128 - status)
        if status:
            failed[name] = status
        if status == _HELD:
            log.warning("%s is left to the process that holds its workdir", name)
        elif status:
            log.error("%s failed with status %d: %s (%s)", name, status, _last_words(member), member.beside(".log"))
    return failed


def execute(member: Member) -> int:
    """Runs the commands of a member up to the first that fails; returns its status, else 0."""
    member.folder.parent.mkdir(parents=True, exist_ok=True)
    for arguments, in_full in zip(member.commands, member.command_lines()):
        with open(member.beside(".log"), "a") as output:
            print(f"$ {shlex.join(['python', *arguments])}", file=output, flush=True)
            status = call([sys.executable, *in_full], output)
        files.put(member.beside(".log"))
        if status:
            return status
    member.finish()
    return 0


def call(arguments: Sequence[str], output: IO[str]) -> int:
    """Runs a command and returns its status. Where this process is stopped (SystemExit, KeyboardInterrupt, however the
    command ends), it stops the command, which has the time to save its state.
    """
    came: list[int] = []
    running: list[subprocess.Popen] = []

    def tell(number, _):
        came.append(number)
        for process in running:
            process.terminate()

    before = {number: signal.signal(number, tell) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT) as process:
            running.append(process)
            if came:  # while the command was starting, so that the signal did not reach it
                process.terminate()
            status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in came:
        raise KeyboardInterrupt
    if came:
        raise SystemExit(128 + signal.SIGTERM)
    return status


def _last_words(member):
    """Reads the message of the last command that failed: its error, or the last line."""
    lines = member.beside(".log").read_text(errors="replace").rpartition("\n$ ")[2].strip().splitlines()
    return next((line for line in reversed(lines) if re.match(r"\w+\.py: ", line)), lines[-1])


def tabulate(members: Sequence[Member], workdir: pathlib.Path, reference: str = "") -> None:
    """Writes and prints the table of the finished members, if there are any."""
    files.fetch(workdir)  # what the members' commands wrote to their addresses
    settings: dict[str, list[pathlib.Path]] = {}
    missing = []
    for member in members:
        if member.finished():
            settings.setdefault(member.setting, []).append(member.folder)
        else:
            missing.append(str(member.folder.relative_to(workdir)))
    if settings:
        table = sweep_table(settings, reference, missing)
        paths = joint.write(workdir, table)
        print(f"{joint.markdown(table)}\nwritten to {', '.join(map(str, paths))}")


def sweep_table(
    settings: Mapping[str, Sequence[pathlib.Path]], reference: str = "", missing: Sequence[str] = ()
) -> Joint:
    """Tabulates the workdirs of a sweep: clean errors, and errors on benchmarks where all of them were evaluated.

    Args:
      settings: {name: finished workdirs, one for each seed}. Those measured under other conditions than the first, or
        than their first seed, are labelled.
      reference: reference of CE, see `analysis.errors.reference.choose`.
      missing: names of the workdirs that are not finished, for the caption.
    """
    if all((folder / "answers").is_dir() for folders in settings.values() for folder in folders):
        evaluated = [
            joint.over_seeds([joint.read(folder, f"{name}/{folder.name}") for folder in folders], name)
            for name, folders in settings.items()
        ]
        whole = joint.joint(evaluated, reference=reference, mismatch=LABEL)
    else:
        whole = _of_clean_errors(settings)
    note = (f"Not finished, and left out: {', '.join(missing)}.",) if missing else ()
    return whole._replace(caption=(*whole.caption, *note))


def _of_clean_errors(settings):
    cells, sources = {}, []
    for name, folders in settings.items():
        values = list(map(_clean_error, folders))
        mean, se = (float(np.mean([value[part] for value in values])) for part in (0, 1))
        over_seeds = summarise((name, *_CLEAN), [(value, None) for value in values])
        cells[name, _CLEAN] = over_seeds._replace(mean=mean, se=se)  # the seeds have the same test images
        records = [read_json(folder / "provenance.json", shape=_OF_PROVENANCE) for folder in folders]
        sources.append(f"{files.shown(str(folders[0].parent))} ({'; '.join(dict.fromkeys(map(summary, records)))})")
    caption = (
        "Top-1 errors in percent on clean test images, mean ± standard error over test images (std between seeds).",
        f"From {'; '.join(sources)}.",
    )
    return Joint(tuple(settings), (_CLEAN,), cells, {}, caption)


def _clean_error(folder) -> Value:
    remedy = f"remove {folder} and give the command again"
    clean = artifacts.read_record(folder / "clean.json", remedy, shape=_OF_CLEAN)
    if clean["model"] != (final_of(folder) or {}).get("digest"):
        raise files.DamagedFileError(
            f"{folder}/clean.json: expected the accuracy of this model, found another's; {remedy}"
        )
    return Value(100 * (1 - clean["accuracy"]), 100 * clean["standard_error"])


def left(members: Sequence[Member]) -> dict[int, Member]:
    """Returns {number: member} of the members that are not finished."""
    return {number: member for number, member in enumerate(members) if not member.finished()}


def printed(form: str, waiting: Mapping[int, Member], again: Sequence[str]) -> str:
    """Writes members that are `left` as `form`: commands, slurm, skypilot; `again` is the command of the sweep.

    Raises ValueError where jobs are asked for and all are finished, SettingsError for SkyPilot without a bucket.
    """
    if form == "commands":
        return "".join(f"{shell(member)}\n" for member in waiting.values())
    if not waiting:
        raise ValueError("expected members left to run, found all finished; the command without --print tabulates them")
    if form == "slurm":
        return jobs.slurm(list(waiting), again)
    if "://" not in again[-1]:
        raise SettingsError(f"expected --workdir in a bucket, which outlives SkyPilot's machines, found {again[-1]}")
    return jobs.skypilot({number: shell(member) for number, member in waiting.items()})


def shell(member: Member) -> str:
    """Writes the commands of a member as a shell takes them, in one line."""
    return " && ".join(shlex.join(["python", *arguments]) for arguments in member.command_lines())


def launch(
    members: Mapping[int, Member], again: Sequence[str], workdir: pathlib.Path, cluster: str, options: Sequence[str]
) -> dict[str, int]:
    """Starts a job for each member through submitit and waits for local ones; returns as `run` does."""
    commands = {number: [*again, f"--member={number}"] for number in members}
    statuses = jobs.launch(cluster, commands, workdir / "jobs", options)
    return {str(members[number].folder.relative_to(workdir)): status for number, status in statuses.items() if status}


def status(failed: Mapping[str, int]) -> int:
    """Returns the exit status: 0, 1 where a member failed, or 75 where other processes hold all that did not run."""
    return 0 if not failed else _HELD if set(failed.values()) == {_HELD} else 1


def main(argv):
    jax.config.update("jax_platforms", "cpu")  # leaves accelerators to the commands
    config, workdir = cli.read_flags(argv)
    asked, given = flags.FLAGS, cli.given_settings()
    if not asked.sweep:
        raise app.UsageError("expected --sweep KEY=VALUE,VALUE")
    chosen = [f"--{name}" for name in ("print", "launch", "member") if asked[name].value is not None]
    if len(chosen) > 1:
        raise app.UsageError(f"expected one of --print, --launch and --member, found {' and '.join(chosen)}")
    if asked.job and not asked.launch:
        raise app.UsageError(
            f"expected --job with --launch=local or --launch=slurm, found --job={asked.job[0]} without --launch"
        )
    if asked.workdir is None:
        workdir = workdir.with_name(f"{workdir.name}_sweep")
    files.fetch(workdir)
    if (workdir / "config.json").exists():
        raise WorkdirError(f"expected a folder for the workdirs of a sweep, found the workdir of a run: {workdir}")
    members = list_members(config, given, read_swept(asked.sweep), asked.command.split("+"), workdir)
    failed: Mapping[str, int] = {}
    again = [f"--sweep={text}" for text in asked.sweep] + [f"--command={asked.command}"]
    again = [sys.executable, "-m", "tools.sweep", *given, *again, files.shown(f"--workdir={workdir}")]
    waiting = left(members) if asked.print or asked.launch else {}
    if asked.member is not None:
        if not 0 <= asked.member < len(members):
            raise app.UsageError(f"expected --member from 0 to {len(members) - 1}, found {asked.member}")
        failed = run([members[asked.member]], workdir)
    elif asked.print:
        print(printed(asked.print, waiting, again), end="")
    elif asked.launch and waiting:
        failed = launch(waiting, again, workdir, asked.launch, asked.job)
    else:
        failed = run(members, workdir)
    if not (asked.print or (asked.launch == "slurm" and waiting) or asked.member is not None):
        tabulate(members, workdir, config.eval.reference)
    return status(failed)


if __name__ == "__main__":
    cli.define_flags()
    flags.DEFINE_multi_string("sweep", [], "A setting and its values, KEY=VALUE,VALUE; one or more times (required).")
    flags.DEFINE_enum("command", "train", ["train", "train+eval", "eval", "overlap"], "What each combination runs.")
    forms = ["commands", "slurm", "skypilot"]
    flags.DEFINE_enum("print", None, forms, "Print the members that are not finished, and run nothing.")
    flags.DEFINE_enum("launch", None, ["local", "slurm"], "Start a job for each of them through submitit.")
    flags.DEFINE_multi_string("job", [], "What a job needs, KEY=VALUE of submitit, for --launch.")
    flags.DEFINE_integer("member", None, "Run only this combination, counted from 0, and write no table.")
    command.run(main, cli.parse)
