"""Lists the commands of this folder with a line each: python -m tools"""

import ast
import pathlib


def lines():
    """(command, first line of its docstring) of every tool, without importing any."""
    for path in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py")):
        yield f"python -m tools.{path.stem}", ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]


if __name__ == "__main__":
    listed = list(lines())
    width = max(len(command) for command, _ in listed)
    for command, line in listed:
        print(f"{command:{width}}  {line}")
    print("\nEach tells more with --help.")
