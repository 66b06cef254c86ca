"""Refuses `python tools/report.py`, for which Python looks for `runtime` in this folder: its command is `python -m tools.report`."""

import os
import sys

_PATH = sys.argv[0]
sys.exit(f"{_PATH}: expected python -m tools.{os.path.basename(_PATH)[:-3]} in the checkout, found python {_PATH}")
