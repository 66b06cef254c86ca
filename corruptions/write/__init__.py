"""Writes corrupted datasets in the published forms: `write_dataset`, and `python -m corruptions.write`."""

from corruptions.files import WriteError
from corruptions.write.sources import Source, from_arrays, from_folder, from_tfds
from corruptions.write.verifying import verify
from corruptions.write.writer import write_dataset

__all__ = ["Source", "WriteError", "from_arrays", "from_folder", "from_tfds", "verify", "write_dataset"]
