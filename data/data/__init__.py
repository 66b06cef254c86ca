"""Refuses `python data/prepare.py`, for which Python looks for `data` in this folder: its command is `python -m data.prepare`."""

import os
import sys

_PATH = sys.argv[0]
sys.exit(f"{_PATH}: expected python -m data.{os.path.basename(_PATH)[:-3]} in the checkout, found python {_PATH}")
