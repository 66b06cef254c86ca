"""What the scripts share: flags, workdir defaults, and errors a person can act on."""

import contextlib
import errno
import os
import pathlib

from absl import app, flags
from ml_collections import config_flags

from training import calibration
from training.log import configure, log
from training.mesh import use_all_cores

_HELP = "Config file, with an optional argument after a colon; settings are overridden by --config.KEY=VALUE."


def define_flags(default_config="configs/default.py"):
    config_flags.DEFINE_config_file("config", default_config, _HELP, lock_config=True)
    flags.DEFINE_string("workdir", None, "Directory of results; by default runs/NAME-OF-THE-CONFIG.")


def read_flags(argv):
    """(config, workdir) from the command line; positional arguments are refused."""
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags, found {argv[1:]}")
    configure()
    use_all_cores()
    config = flags.FLAGS.config
    use_ranges(config)
    if flags.FLAGS.workdir is not None:
        return config, pathlib.Path(flags.FLAGS.workdir)
    given = config_flags.get_config_filename(flags.FLAGS["config"])
    name = os.path.basename(given).replace(".py", "").replace(":", "-").replace("/", ".")
    return config, pathlib.Path("runs") / name


def use_ranges(config):
    """Puts the calibrated ranges of config.ranges, a file, into train.corruption_options; given options win."""
    if not config.ranges:
        return
    given = config.train.corruption_options
    with config.unlocked():
        for name, options in calibration.read_ranges(config.ranges).items():
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
        raise SystemExit(1) from error
