"""Weights of style transfer: the public ones, a decoder by the paper's recipe, or a small one.

python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:public --workdir=runs/style \
    --config.adain.encoder=vgg_normalised.pth --config.adain.decoder=decoder.pth --config.adain.styles=PAINTINGS
python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:paper --workdir=runs/style_trained \
    --config.adain.encoder=vgg_normalised.pth --config.adain.styles=PAINTINGS --config.dataset.data_dir=DIR
python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:cifar10 --workdir=runs/style_cifar10 \
    --config.dataset.data_dir=DIR
python -m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:smoke --workdir=runs/style_smoke

public   no training: both files come from the PyTorch port of AdaIN, pictures from a folder
paper    160,000 steps of 8 contents (ImageNet here, MS-COCO in the paper) and 8 styles, of 256 pixels
cifar10  32 pixels, an eighth of the channels, procedural textures, and an encoder of random values, since the public one
         is not available: a small stand-in, not the paper's style transfer
smoke    ten steps on the embedded dataset: shows that the command runs

With cifar10 coarse shapes should stay, colours and details be lost. Nothing here is measured.
"""

from configs import default

VARIANTS = ("public", "paper", "cifar10", "smoke")


def get_config(variant="cifar10"):
    if variant not in VARIANTS:
        raise ValueError(f"expected style_decoder.py:{', :'.join(VARIANTS)}, found {variant!r}")
    config = default.get_config()
    if variant in ("public", "paper"):
        config.dataset.name, config.dataset.image_size = "imagenet", 256 if variant == "paper" else 224
        config.adain.steps = 160_000 if variant == "paper" else 0
        return config
    config.dataset.name = "cifar10" if variant == "cifar10" else "shapes"
    config.adain.widths = (8, 16, 32, 64)
    config.adain.steps, config.adain.learning_rate = 1500, 1e-3
    if variant == "smoke":
        config.dataset.train_limit = config.dataset.test_limit = 100
        config.adain.drawn, config.adain.steps = 6, 10
    return config
