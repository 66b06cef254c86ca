"""ImageNet and ImageNet-100: every image decoded and resized once, into shards that are read as
memory maps.

load.py     `load_imagenet`: the prepared store below a folder, else the tree of class folders that lies there
prepare.py  makes a store from a source with many processes; continues where it was stopped
source.py   what stores are made from: a tree of class folders, or tfds' imagenet2012
shard.py    one shard: a piece of the source in one file, and the record that says it is complete
store.py    the folder of shards: layout, opening with checks, verifying every byte
"""
