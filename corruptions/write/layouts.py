"""The forms of a corrupted dataset on disk, by name: the two published ones, and shards."""

from corruptions.write.folders import Folders
from corruptions.write.npy import Npy
from corruptions.write.shards import Parquet, WebDataset

LAYOUTS = {"npy": Npy, "folders": Folders, "parquet": Parquet, "webdataset": WebDataset}
