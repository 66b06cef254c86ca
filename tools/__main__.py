"""Lists the commands of this folder with a line each: python -m tools"""

from runtime import command  # isort: skip

import ast
import pathlib

from absl import flags


def lines():
    """(command, first line of its docstring) of every tool, without importing any."""
    for path in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py")):
        yield f"python -m tools.{path.stem}", ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]


def parse(argv):
    """Takes no flags, and lists for --help."""
    flags.FLAGS(argv[:1])
    return [argument for argument in argv if argument not in ("-h", "--help")]


def main(argv):
    command.refuse_positional(argv)
    listed = list(lines())
    width = max(len(name) for name, _ in listed)
    for name, line in listed:
        print(f"{name:{width}}  {line}")
    print("\nEach tells more with --help.")


if __name__ == "__main__":
    command.run(main, parse)
