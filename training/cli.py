"""What the scripts share: flags, workdir defaults, and errors a person can act on."""

import contextlib
import errno
import os
import pathlib
import sys

import jax
from absl import app, flags
from ml_collections import config_flags

from runtime import distributed
from runtime.log import configure, log
from runtime.meshes import use_all_cores
from runtime.provenance import code
from runtime.settings import flatten
from training import ranges

flags.disclaim_key_flags()  # what is defined here belongs to the script: --help lists it
_HELP = "Config file, with an optional argument after a colon; settings are overridden by --config.KEY=VALUE."


def define_flags(default_config="configs/default.py", hosts=False):
    """Defines --config and --workdir, and with `hosts` what connects many processes (docs/distributed.md)."""
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


def read_flags(argv):
    """(config, workdir) from the command line; positional arguments are refused."""
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags, found {argv[1:]}")
    configure()
    use_all_cores()
    several = _join_others()
    config = flags.FLAGS.config
    use_ranges(config)
    workdir = _workdir()
    if several:
        asked = flatten({"config": config.to_dict()}) | {
            "workdir": str(workdir),
            "script": pathlib.Path(sys.argv[0]).name,
        }
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


def use_ranges(config):
    """Puts the calibrated ranges of config.ranges, a file, into train.corruption_options; given options win."""
    if not config.ranges:
        return
    given = config.train.corruption_options
    with config.unlocked():
        for name, options in ranges.read_ranges(config.ranges).items():
            given[name] = options | (given[name].to_dict() if name in given else {})


@contextlib.contextmanager
def errors():
    """Turns foreseen errors into one message and exit status 1, without a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        if os.environ.get("JAX_CORRUPTIONS_TRACEBACK"):
            raise
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "; make room, and the same command continues" if full else ""
        log.error("%s: %s%s\n(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)", type(error).__name__, error, advice)
        if distributed.lost_another(error):
            log.error(
                "Another process of this run has probably stopped, its own output tells why; this one cannot go on "
                "alone. Start all of them again with the same commands: they continue from the last checkpoint."
            )
        distributed.abandon()
