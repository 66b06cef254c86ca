"""Torchvision's weights on ImageNet's validation images under ImageNet-C, at all five levels.

python eval.py --config=configs/imagenet.py:resnet50 --config.model.checkpoint=resnet50-0676ba61.pth \\
    --config.dataset.data_dir=IMAGENET --workdir=runs/imagenet_resnet50

IMAGENET is a folder that `python -m data.prepare` wrote, or a tree with val/ and in it a folder for each of
the 1000 WordNet IDs: sorted, they are the order of torchvision's logits. Preprocessing is as for
the published numbers: shorter side 256 (bilinear with antialiasing), centre 224, corrupted as
uint8, normalised by the model. Weights called V2 were made for a shorter side of 232. The published
tests were stored as JPEG, here nothing is stored: --config.eval.stored=PATH/TO/ImageNet-C reads the
published images.

Expected of resnet50-0676ba61: 76.1 % clean (torchvision); mCE 76.7 on the published images
(Hendrycks and Dietterich 2019).

`imagenet.py:resnet50,100` evaluates the same weights on ImageNet-100, every tenth class, with only
the images and logits of these classes. From then on the workdir is like a workdir of train.py:
tools.calibrate and tools.msd take it, and train.py starts from it (--config.train.init_from).
"""

from configs import default


def get_config(variant="resnet50"):
    config = default.get_config()
    name, _, classes = variant.partition(",")
    if classes not in ("", "100", "1000"):
        raise ValueError(f"expected imagenet.py:MODEL or imagenet.py:MODEL,100, found {variant!r}")
    config.model.name = name
    config.model.dtype = "float32"
    config.model.class_stride = 10 if classes == "100" else 1
    config.dataset.name = "imagenet100" if classes == "100" else "imagenet"
    config.dataset.image_size = 224
    config.dataset.train_limit = 1000  # for tools.msd; of a tree only these are decoded
    config.eval.corruptions = ("imagenet_c",)
    config.eval.severity = "levels"
    config.eval.batch_size = 100
    return config
