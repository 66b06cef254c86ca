"""One model on the embedded dataset, and every setting there is with its default.

    python train.py --config=configs/default.py --workdir=runs/default

Expected: 40 epochs of the papers' recipe at about 3,000 images a second on 2 free CPU cores; the
training images are learned by heart after some 25 epochs. For a good model in half a minute see
configs/overlap_shapes.py.

Settings are overridden on the command line, `--config.seed=3 --config.train.epochs=10`; a misspelt
name is answered with a suggestion. training/sections.py states every setting: default, meaning and
range; `python train.py --help` and docs/reference/settings.md list them.
"""

from training import sections


def get_config():
    return sections.default_config()
