"""ICONS-50: a WRN-16-4 that never saw a style, or 50 subclasses, by the draft's recipe.

python train.py --config=projects/structural/configs/icons50.py:style_microsoft --workdir=runs/icons50_microsoft
python train.py --config=projects/structural/configs/icons50.py:style_apple --workdir=runs/icons50_apple
python train.py --config=projects/structural/configs/icons50.py:subclass --workdir=runs/icons50_subclass
python train.py --config=projects/structural/configs/icons50.py:smoke --workdir=runs/icons50_smoke

with --config.dataset.data_dir=DIR for the folder of ICONS-50, or of a stand-in (`python -m projects.structural.standin
--dataset=icons50 --out=DIR`). Ends in the accuracy on the held-out icons, with its standard error. 50 epochs of batches
of 128, Nesterov, cosine from .1, dropout .3, mirror and crop, pixels in [0, 1]; weight decay 1e-4 as in the later code
(5e-4 in the earlier code, nothing in the draft).

Published: 57 % (Microsoft), about 93 % (Apple), 60.4 % (subclass, matched as in the released code, which leaves no
training images of two classes; `subclass_exact` holds out the 50 alone). Not yet measured here. `smoke` is a small
network for two epochs: it shows that this runs.
"""

from configs import default

VARIANTS = {
    "style_microsoft": "icons50_microsoft",
    "style_apple": "icons50_apple",
    "subclass": "icons50_subclass",
    "subclass_exact": "icons50_subclass_exact",
    "smoke": "icons50_microsoft",
}


def get_config(variant="style_microsoft"):
    if variant not in VARIANTS:
        raise ValueError(f"expected icons50.py:{', :'.join(VARIANTS)}, found {variant!r}")
    config = default.get_config()
    config.imports = ("projects.structural.datasets",)
    config.dataset.name = VARIANTS[variant]
    config.model.name = "wrn_16_4"
    config.model.dropout = 0.3
    config.model.mean, config.model.std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    train = config.train
    train.crop = 4
    train.epochs, train.batch_size = 50, 128
    train.schedule, train.learning_rate, train.nesterov = "cosine", 0.1, True
    if variant == "smoke":
        config.model.name = "small_resnet"
        del config.model.dropout
        train.epochs = 2
    return config
