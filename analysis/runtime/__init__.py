"""Refuses `python analysis/gallery.py`, for which Python looks for `runtime` in this folder: its command is `python -m analysis.gallery`."""

import os
import sys

_PATH = sys.argv[0]
sys.exit(f"{_PATH}: expected python -m analysis.{os.path.basename(_PATH)[:-3]} in the checkout, found python {_PATH}")
