"""Refuses `python tools/report.py`, for which Python looks for `runtime` in this folder: its command is `python -m tools.report`.

Links lead here from other folders of commands, under the name of what their commands import first (`runtime`, `data`).
"""

import os
import pathlib
import sys

_PATH = sys.argv[0]
_NAMES = (
    pathlib.Path(os.path.abspath(_PATH)).relative_to(pathlib.Path(__file__).resolve().parents[2]).with_suffix("").parts
)
_MODULE = ".".join(name for name in _NAMES if name != "__main__")
sys.exit(f"{_PATH}: expected python -m {_MODULE} in the checkout, found python {_PATH}")
