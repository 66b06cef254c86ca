"""Flags of the commands that take a config, the check of their settings, and their start: imports, files, processes."""

import contextlib
import itertools
import pathlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

import models
from corruptions.assets import FROM_FILES
from corruptions.core.registry import qualified_options
from corruptions.files import similar
from runtime import command, distributed, files, meshes, settings
from runtime.artifacts import shared
from runtime.log import configure, log
from runtime.meshes import use_all_cores
from runtime.settings import SettingsError, flatten
from runtime.workdirs import Workdir
from training import ranges
from training.conflicts import conflicts
from training.sections import SETTINGS, TrainSettings

flags.disclaim_key_flags()  # flags defined here belong to the script: --help lists them
_HELP = "Config file, with an optional argument after a colon; --config.KEY=VALUE overrides a setting"
_HOSTS = ("distributed", "coordinator", "num_processes", "process_id", "heartbeat_seconds")
_USUAL = (  # settings that --help lists; --help=all lists all
    *("seed", "ranges", "dataset.name", "dataset.data_dir", "dataset.image_size", "model.name", "train.corruption"),
    *("train.scheme", "train.epochs", "train.batch_size", "train.learning_rate", "train.init_from", "eval.corruptions"),
    *("eval.severity", "study.corruptions", "study.seeds", "study.parallel"),
)
_default = ""  # config file of the script


def define_flags(default_config: str = "configs/default.py", hosts: bool = False) -> None:
    """Defines --config, --workdir and, with `hosts`, the flags that connect processes (docs/distributed.md).

    --help lists usual settings with their values in `default_config`, --help=all lists all.
    """
    global _default
    of_checkout = pathlib.Path(__file__).parents[1] / default_config  # for a command started in another folder
    _default = default_config if pathlib.Path(default_config).is_file() else str(of_checkout)
    config_flags.DEFINE_config_file("config", None, f"{_HELP}.", lock_config=True)
    flags.DEFINE_string("workdir", None, "Directory of results; by default runs/NAME-OF-THE-CONFIG.")
    if hosts:
        started, silence = "that SLURM, Open MPI or Cloud TPU started", distributed.HEARTBEAT_SECONDS
        flags.DEFINE_bool("distributed", False, f"This is one of many processes {started}.")
        flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, where no cluster manager starts them.")
        flags.DEFINE_integer("num_processes", None, "Number of processes, with --coordinator.")
        flags.DEFINE_integer("process_id", None, "Number of this process, from 0, with --coordinator.")
        flags.DEFINE_integer("heartbeat_seconds", silence, "Seconds of silence after which a process counts as dead.")


def read_flags(argv: list[str]) -> tuple[ConfigDict, pathlib.Path]:
    """Returns (config, workdir) from the command line; refuses positional arguments and wrong settings (`check`)."""
    command.refuse_positional(argv)
    configure()
    config = flags.FLAGS.config
    command.import_all(config.get("imports", ()))
    with config.unlocked():
        config.imports = tuple(dict.fromkeys((*config.get("imports", ()), *_imports())))
    if (stored := _workdir() / "config.json").exists():  # before names that its modules register are unknown
        imports = files.read_json(stored, remedy="restore it or use another folder").get("imports", ())
        command.refuse_imports(imports, stored)
    check(config)
    use_all_cores()
    several = _join_others()
    command.fetch_settings(config)
    use_ranges(config)
    use_files(config)
    workdir = _workdir()
    if several:
        ours = {
            "workdir": files.shown(str(workdir)),
            "script": command.program(),
            "devices": jax.local_device_count(),
        }
        distributed.check_same(flatten({"config": config.to_dict()}) | ours | shared(config.imports))
    return config, workdir


def start(argv: list[str]) -> tuple[ConfigDict, pathlib.Path]:
    """Reads the command line as `read_flags` does, and keeps compiled programs for the next command."""
    config, workdir = read_flags(argv)
    meshes.enable_compilation_cache()
    return config, workdir


def main(
    work: Callable[[ConfigDict, pathlib.Path], object], done: str = "Results are in {workdir}."
) -> Callable[[list[str]], None]:
    """Makes the main function of a command: `work(config, workdir)`, then the line `done`.

    A text that `work` returns is printed, by the process that writes. The line may name {workdir} and {imports}, the flag
    that imports the same modules.
    """

    def main(argv: list[str]) -> None:
        config, workdir = start(argv)
        text = work(config, workdir)
        if isinstance(text, str) and Workdir(workdir).writes:
            print(f"\n{text}")
        imports = f" --imports={','.join(config.imports)}" if config.imports else ""
        log.info("%s", done.format(workdir=workdir, imports=imports))

    return main


def parse(argv: list[str]) -> list[str]:
    """Parses the flags for `command.run`; without --config the script's default config file counts.

    Raises:
      SettingsError: a config or a setting that does not exist, or a value that it does not take.
      absl.flags.Error: another wrong flag.
      SystemExit: --help was printed. Also without any argument, so that no training starts by accident.
    """
    if help_wanted := next((argument for argument in argv[1:] if re.match(r"--?help(=|$)", argument)), len(argv) == 1):
        print(help_text(every="=all" in str(help_wanted)))
        raise SystemExit(0)
    named = [file for file in map(_named_file, argv, [*argv[1:], ""]) if file is not None]
    file = named[-1] if named else _default
    if not pathlib.Path(path := file.partition(":")[0]).is_file():
        raise SettingsError(f"expected a config file as --config, found no file {path}{_like(path)}")
    with _settings_errors(argv, lambda: _load(file)):
        return flags.FLAGS([*argv[:1], *([] if named else [f"--config={file}"]), *argv[1:]])


def _like(path):
    """Suggests a config file like the path of none, in its folder or in configs/."""
    path = pathlib.Path(path)
    known = {
        file.stem: file for folder in (pathlib.Path(_default).parent, path.parent) for file in folder.glob("[a-z]*.py")
    }
    near = similar(path.stem, known)
    return f"; did you mean {known[near[0]]}?" if near else ""


def help_text(every: bool) -> str:
    """Writes the help of the running command: its purpose, its flags, usual settings, or with `every` all."""
    config = flat(_load(_default))
    own = {flag.name: flag for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0])}
    own |= {name: flags.FLAGS[name] for name in ("imports",) if name in flags.FLAGS}
    shown = [flag for name, flag in own.items() if name != "config" and (every or name not in _HOSTS)]
    lines = [f"  --config=FILE  {_HELP} (now {_default})."]
    lines += [f"  --{flag.name}{'' if flag.boolean else '=...'}  {' '.join(flag.help.split())}" for flag in shown]
    if not every and set(_HOSTS) & own.keys():
        lines.append("  --distributed, --coordinator and more: one of many processes (docs/distributed.md).")
    if every:
        lines += ["", "Settings:", *(f"  --{line}" for line in settings.lines(SETTINGS, config))]
    else:
        lines += ["", f"Usual settings (--help=all lists all {len(SETTINGS)} and the values they take):"]
        lines += [f"  --config.{key}={config[key]!r}  {SETTINGS[key].meaning}" for key in _USUAL if key in config]
    return "\n".join([sys.modules["__main__"].__doc__.strip(), "", "Flags:", *lines])


def overridden(config: ConfigDict, texts: Mapping[str, str]) -> ConfigDict:
    """Copies a config with {dotted key: text of the value} as the command line would override it.

    Raises:
      SettingsError: a setting that does not exist, or a value that it does not take.
    """
    argv, values = [f"--config.{key}={text}" for key, text in texts.items()], flags.FlagValues()
    with _settings_errors(argv, lambda: config):
        copy = ConfigDict(config.to_dict())
        config_flags.DEFINE_config_dict("config", copy, flag_values=values, sys_argv=argv)
        values(["", *argv])
    return values.config


def given_settings() -> list[str]:
    """Lists --config and the overrides of the running command, as flags for another command."""
    flag = flags.FLAGS["config"]
    overrides = config_flags.get_override_values(flag)
    imports = [f"--imports={','.join(_imports())}"] if _imports() else []
    return [
        f"--config={config_flags.get_config_filename(flag)}",
        *imports,
        *itertools.starmap(argument, overrides.items()),
    ]


def _imports():
    """The modules that --imports names, which `command.run` imported."""
    return flags.FLAGS.imports if "imports" in flags.FLAGS else []


def argument(key: str, value: Any) -> str:
    """Writes a setting as the command line takes it: `--config.train.epochs=3`."""
    return f"--config.{key}={value.to_dict() if isinstance(value, ConfigDict) else value}"


@contextlib.contextmanager
def _settings_errors(argv, config):
    """Turns errors of parsing flags into SettingsErrors; `config()` gives the known settings."""
    try:
        yield
    except flags.IllegalFlagValueError as error:
        match = re.match(r"flag --config\.([^=]+)=(.*?): ", str(error), re.S)
        if match and match[1] in SETTINGS:
            takes = SETTINGS[match[1]].expected
            hint = settings.of_percent(match[2], SETTINGS[match[1]].check)
            raise SettingsError(f"config.{match[1]}: expected {takes}, found {match[2]!r}{hint}") from error
        raise
    except flags.UnrecognizedFlagError as error:
        keys = [key for key in SETTINGS if key.rpartition(".")[2] == error.flagname]
        if not (keys := keys or settings.abbreviated(error.flagname, SETTINGS)):
            raise
        values = [argument.partition("=")[2] for argument in argv if re.match(f"--?{error.flagname}=", argument)]
        calls = " or ".join(f"--config.{key}={values[0] if values else 'VALUE'}" for key in keys[:2])
        raise SettingsError(f"there is no flag --{error.flagname}; a setting is given as {calls}") from error
    except (KeyError, AttributeError) as error:
        _refuse_unknown(argv, config())
        raise error from None


def _named_file(argument, following):
    """The file that --config=FILE or --config FILE names; None for other arguments."""
    match = re.fullmatch(r"--?config(=.*)?", argument, re.S)
    return match and (following if match[1] is None else match[1][1:])


def _refuse_unknown(argv, config):
    """Refuses settings on the command line that the config lacks, with a suggestion."""
    known = flatten(config.to_dict()) | flat(config)
    groups = {".".join(key.split(".")[:depth]) for key in known for depth in range(1, key.count(".") + 1)}
    keys = [match[1] for argument in argv if (match := re.match(r"--?(?:no)?config\.([^=]+)", argument))]
    if wrong := [key for key in keys if key not in known and key not in groups]:
        raise SettingsError("; ".join(settings.unknown(key, known) for key in wrong))


def _load(file):
    return config_flags.config_flags.ConfigFileFlagParser("config").parse(file)


def _join_others():
    """Connects with the other processes where the flags name any; returns whether there are others."""
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
        return pathlib.Path(files.local(flags.FLAGS.workdir, "--workdir", use="hold"))
    file, _, variant = config_flags.get_config_filename(flags.FLAGS["config"]).partition(":")
    name = "-".join(filter(None, (pathlib.Path(file).stem, variant.replace("/", "."))))
    return pathlib.Path("runs") / name


def use_ranges(config: ConfigDict) -> None:
    """Puts the ranges in the file config.ranges into train.corruption_options; options in the config win.

    The names of the corruptions become qualified ones: `fog` becomes `imagenet_c/fog`.
    """
    given = qualified_options(config.train.corruption_options.to_dict())
    for name, options in (ranges.read_ranges(config.ranges) if config.ranges else {}).items():
        given[name] = options | given.get(name, {})
    config.train.corruption_options = given


def use_files(config: ConfigDict) -> None:
    """Reads the files of config.frost, config.bank and config.style; their digests enter train.corruption_options.

    Raises:
      FileNotFoundError, DamagedFileError: there is no such file or folder, or it holds something else.
      SettingsError: the options name other files, or no module of config.imports reads the setting.
    """
    for setting in ("frost", "bank", "style"):
        if not config.get(setting):
            continue
        if setting not in FROM_FILES:
            raise SettingsError(
                f"config.{setting}: expected a module that reads it, for example --imports=projects.structural.style, "
                f"found imports {tuple(config.imports)!r}"
            )
        known = FROM_FILES[setting]
        path = files.local(config[setting], f"config.{setting}")
        option, digest = known.option, known.use(path, config.dataset.get("turn", False))
        # A copy, such as robodepth/frost, counts where its benchmark is named: other workdirs keep the settings they have.
        named = repr(config.to_dict())
        for corruption in known.corruptions:
            if corruption not in known.registered and corruption.partition("/")[0] not in named:
                continue
            stored = config.train.corruption_options.to_dict()
            options = stored.get(corruption, {})
            if options.get(option, digest) != digest:
                raise SettingsError(
                    f"config.{setting}: expected the {option} {options[option][:16]} that "
                    f"config.train.corruption_options names, found {digest[:16]} in {config[setting]}"
                )
            config.train.corruption_options = stored | {corruption: options | {option: digest}}


def check(config: ConfigDict) -> None:
    """Checks the settings of a command, each alone and then together.

    Raises:
      SettingsError: names every wrong setting with the expected and the found value.
    """
    known = SETTINGS | TrainSettings.settings("study.finetune.")
    values = flat(config)
    optional = {key for key, one in SETTINGS.items() if one.default is None or key.startswith("study.finetune.")}
    if missing := [key for key in SETTINGS if key not in values and key not in optional]:
        raise SettingsError(
            f"expected {', '.join(f'config.{key}' for key in missing)}, found no such setting; make the config from "
            "configs.default.get_config()"
        )

    def of_network(key):  # a network may have options that no other has: `conflicts` compares them with its class
        return key.startswith("model.") and key.removeprefix("model.") in models.options(values["model.name"])

    settings.check({key: value for key, value in values.items() if key in known or not of_network(key)}, known)
    if wrong := list(conflicts(config)):
        raise SettingsError("\n".join(wrong))


def flat(config: ConfigDict) -> dict[str, Any]:
    """Flattens a config to {dotted key: value}; a setting that holds a dict stays one."""
    return flatten(config.to_dict(), whole=SETTINGS)
