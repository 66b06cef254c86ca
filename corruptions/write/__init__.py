"""Writes corrupted datasets in the published forms: `write_dataset`, and `python -m corruptions.write`."""

from corruptions.core import running  # isort: skip

running.watch_command("corruptions")

# ruff: noqa: E402 - Ctrl-C is watched before the first import
from corruptions.files import WriteError
from corruptions.write.sources import Source, from_arrays, from_folder, from_tfds
from corruptions.write.verifying import verify
from corruptions.write.writer import write_dataset

__all__ = ["Source", "WriteError", "from_arrays", "from_folder", "from_tfds", "verify", "write_dataset"]
