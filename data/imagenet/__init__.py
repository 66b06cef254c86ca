"""ImageNet and ImageNet-100: every image decoded and resized once, into shards that are read as memory maps.

load.py     `load_imagenet`: the prepared store below a folder, else a tree of class folders
prepare.py  makes a store from a tree of class folders or tfds' imagenet2012 with many processes; continues where it was stopped
store.py    the folder of shards: writing one, opening with checks, verifying every byte
"""
