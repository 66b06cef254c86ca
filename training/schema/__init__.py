"""Every setting of the commands that take a config: type, range, unit and meaning, in one place.

`SETTINGS` maps dotted keys to `runtime.schema.Setting`; defaults are in configs/default.py. Errors
before anything is written (`check`), `--help` (`listed`) and docs/reference/settings.md come from
it.

inputs.py    `seed`, `ranges`, `frost`, `style`, `imports`, `dataset`, `model`: what a model is and what it sees
recipe.py    `train`: how it is trained
measures.py  `eval`, `adapt`, `study`, `msd`, `search`, `calibrate`: what is asked of trained models
style.py     `adain`: weights of style transfer
named.py     settings that name something
rules.py     what must hold between settings
"""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

import models
from runtime import schema
from runtime.schema import Setting, SettingsError
from training.schema import inputs, measures, recipe, rules, style

_FINETUNE = ("epochs", "learning_rate", "schedule", "warmup_epochs")  # by default; any of `train` may be set

SETTINGS: dict[str, Setting] = inputs.SETTINGS | recipe.SETTINGS | style.SETTINGS | measures.SETTINGS
_OPTIONAL = {  # options that some networks have, and what fine-tuning changes
    *(
        f"model.{key}"
        for key in ("stem", "widths", "scale", "dropout", "conv", "memory_efficient", "exits", "step", "base")
    ),
    *(f"study.finetune.{key}" for key in _FINETUNE),
}
SETTINGS |= {f"study.finetune.{key}": SETTINGS[f"train.{key}"] for key in _FINETUNE}


def check(config: ConfigDict) -> None:
    """Checks the settings of a command, each alone and then together.

    Raises:
      SettingsError: names every setting that is wrong, what was expected and what was found.
    """
    known = SETTINGS | {
        key.replace("train.", "study.finetune.", 1): one for key, one in SETTINGS.items() if key.startswith("train.")
    }
    values = flat(config)
    if missing := [key for key in SETTINGS if key not in values and key not in _OPTIONAL]:
        raise SettingsError(
            f"expected {', '.join(f'config.{key}' for key in missing)}, found no such setting; make the config from "
            "configs.default.get_config()"
        )
    # A network's options may be its own: rules.of_model holds them against its class.
    checked = {key: value for key, value in values.items() if key in known or not _is_of_model(key, values)}
    schema.check(checked, known)
    if wrong := [problem for rule in rules.RULES for problem in rule(config)]:
        raise SettingsError("\n".join(wrong))


def listed(config: ConfigDict) -> str:
    """Lists every setting with its value in `config`, as --help shows them."""
    return "\n".join(schema.lines(SETTINGS, flat(config)))


def flat(config: ConfigDict) -> dict[str, Any]:
    """Flattens a config to {dotted key: value}; a setting that holds a dict stays one."""
    return dict(_items(config.to_dict(), ""))


def _items(tree: Mapping[str, Any], prefix: str):
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in SETTINGS:
            yield from _items(value, f"{key}.")
        else:
            yield key, value


def _is_of_model(key, values):
    return key.startswith("model.") and key.removeprefix("model.") in models.options(values["model.name"])
