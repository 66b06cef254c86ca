"""Refuses `python benchmarks/speed.py`, for which Python looks for `runtime` in this folder: its command is `python -m benchmarks.speed`."""

import os
import sys

_PATH = sys.argv[0]
sys.exit(f"{_PATH}: expected python -m benchmarks.{os.path.basename(_PATH)[:-3]} in the checkout, found python {_PATH}")
