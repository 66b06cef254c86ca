"""Commands beside the four at the top, one a file: `python -m tools` lists them."""

from corruptions.core import running  # isort: skip

running.watch_command(__name__)

# ruff: noqa: E402 - Ctrl-C is watched before the first import
import pathlib
import sys


def _refuse_unknown(module, words):
    """Ends `python -m tools.reprot` and `python -m tools report` with the command that was meant.

    Python imports this package before it looks for the module.
    """
    tools = [path.stem for path in pathlib.Path(__file__).parent.glob("[a-z]*.py")]
    package, _, name = module.partition(".")
    spaced = bool(module == __name__ and words and not words[0].startswith("-"))
    name = words[0] if spaced else name
    if package != __name__ or not name or (name in (*tools, "__main__") and not spaced):
        return
    from corruptions.files import similar

    near = similar(name, tools)
    meant = f"python -m tools.{near[0]}" if near else "a tool that python -m tools lists"
    sys.exit(f"tools: expected {meant}, found python -m {' '.join([module, *words[:1]] if spaced else [module])}")


if running.asked():
    _words = sys.orig_argv[sys.orig_argv.index("-m") + 1 :]
    _refuse_unknown(_words[0], _words[1:])
