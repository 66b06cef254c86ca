"""ImageNet and ImageNet-100: every image decoded and resized once, into shards that are read as memory maps.

prepare.py  makes a store from a tree of class folders or tfds' imagenet2012 with many processes; continues where it was stopped
store.py    the folder of shards: writing one, opening with checks, verifying every byte; `load_imagenet`: such a store below a
            folder, else a tree of class folders
"""
