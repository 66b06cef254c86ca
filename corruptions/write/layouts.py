"""The two published forms of a corrupted dataset on disk, by name."""

from corruptions.write.folders import Folders
from corruptions.write.npy import Npy

LAYOUTS = {"npy": Npy, "folders": Folders}
