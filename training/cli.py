"""What the commands that take a config share: its flags, the workdir's default, calibrated ranges, other processes."""

import os
import pathlib

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from runtime import command, distributed
from runtime.log import configure, log
from runtime.meshes import use_all_cores
from runtime.provenance import code
from runtime.settings import flatten
from training import ranges

flags.disclaim_key_flags()  # what is defined here belongs to the script: --help lists it
_HELP = "Config file, with an optional argument after a colon; settings are overridden by --config.KEY=VALUE."


def define_flags(default_config: str = "configs/default.py", hosts: bool = False) -> None:
    """Defines --config, --workdir and, with `hosts`, what connects processes (docs/distributed.md)."""
    config_flags.DEFINE_config_file("config", default_config, _HELP, lock_config=True)
    flags.DEFINE_string("workdir", None, "Directory of results; by default runs/NAME-OF-THE-CONFIG.")
    if hosts:
        flags.DEFINE_bool("distributed", False, "One of many processes, which SLURM, Open MPI or Cloud TPU started.")
        flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, on machines that nobody manages.")
        flags.DEFINE_integer("num_processes", None, "How many processes there are, with --coordinator.")
        flags.DEFINE_integer("process_id", None, "Which one this is, from 0, with --coordinator.")
        flags.DEFINE_integer(
            "heartbeat_seconds", distributed.HEARTBEAT_SECONDS, "A process silent for so long is taken for dead."
        )


def read_flags(argv: list[str]) -> tuple[ConfigDict, pathlib.Path]:
    """Returns (config, workdir) from the command line; positional arguments are refused."""
    command.refuse_positional(argv)
    configure()
    use_all_cores()
    several = _join_others()
    config = flags.FLAGS.config
    use_ranges(config)
    workdir = _workdir()
    if several:
        asked = flatten({"config": config.to_dict()}) | {"workdir": str(workdir), "script": command.program()}
        distributed.check_same(asked | {"devices": jax.local_device_count()} | code())
    return config, workdir


def _join_others():
    """Connects with the other processes when the flags say that there are some."""
    given = flags.FLAGS.flag_values_dict()
    arguments = [given.get(name) for name in ("coordinator", "num_processes", "process_id")]
    if not given.get("distributed") and arguments == [None] * 3:
        return False
    distributed.initialize(*arguments, heartbeat_seconds=given["heartbeat_seconds"])
    configure(process=jax.process_index())
    log.info(
        "%d processes. When one dies the others stop within about %d s; the same commands continue.",
        jax.process_count(),
        given["heartbeat_seconds"],
    )
    return True


def _workdir():
    if flags.FLAGS.workdir is not None:
        return pathlib.Path(flags.FLAGS.workdir)
    given = config_flags.get_config_filename(flags.FLAGS["config"])
    name = os.path.basename(given).replace(".py", "").replace(":", "-").replace("/", ".")
    return pathlib.Path("runs") / name


def use_ranges(config: ConfigDict) -> None:
    """Puts the ranges in the file config.ranges into train.corruption_options; given options win."""
    if not config.ranges:
        return
    given = config.train.corruption_options
    with config.unlocked():
        for name, options in ranges.read_ranges(config.ranges).items():
            given[name] = options | (given[name].to_dict() if name in given else {})
