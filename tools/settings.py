"""Lists every setting with its default, the values it takes and its meaning:
docs/reference/settings.md.

    python -m tools.settings --out=docs/reference/settings.md

The commands that take a config list the same with --help.
"""

from runtime import command  # isort: skip

from absl import flags

from configs import default
from runtime import schema
from runtime.files import write_atomically
from training.schema import SETTINGS, flat

_INTRODUCTION = """\
# Settings

What `--config.KEY=VALUE` sets, for train.py, eval.py, overlap.py and the tools that take a config. Other values are refused
before anything is written. Files in `configs/` change some of the defaults. Made by `python -m tools.settings`.

"""


def define_flags():
    flags.DEFINE_string("out", None, "Markdown file to write (required).")


def page():
    """Formats all settings as Markdown."""
    return _INTRODUCTION + schema.markdown(SETTINGS, flat(default.get_config()))


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    write_atomically(given.out, page())
    print(f"written to {given.out}")


if __name__ == "__main__":
    define_flags()
    command.run(main)
