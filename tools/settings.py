"""Writes docs/reference/settings.md, the list of every setting with its default, values and meaning.

    python -m tools.settings --out=docs/reference/settings.md

With --help=all the commands that take a config list the same.
"""

from runtime import command  # isort: skip

from absl import flags

from runtime import settings
from runtime.files import write_atomically
from training.sections import SETTINGS

_INTRODUCTION = """\
# Settings

`--config.KEY=VALUE` sets these in train.py, eval.py, overlap.py and the tools that take a config. Other values are refused
before anything is written. Files in `configs/` change some of the defaults. Made by `python -m tools.settings`.

"""


def page():
    """Formats all settings as Markdown."""
    return _INTRODUCTION + settings.markdown(SETTINGS)


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    write_atomically(given.out, page())
    print(f"written to {given.out}")


if __name__ == "__main__":
    flags.DEFINE_string("out", None, "Markdown file to write (required).")
    command.run(main)
