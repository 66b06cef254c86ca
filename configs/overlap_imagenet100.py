"""The overlap papers at their scale: ImageNet-C with ImageNet-NOC on ImageNet-100 at 224 pixels.

python -m data.prepare --dataset=imagenet100 --source=TREE --data_dir=DIR --resize=squash
python overlap.py --config=configs/overlap_imagenet100.py:resnet18 --config.dataset.data_dir=DIR \\
    --workdir=runs/in100_resnet18
python overlap.py --config=configs/overlap_imagenet100.py:smoke --workdir=runs/in100_smoke

`:densenet121` and `:wide_resnet50_2` are the papers' other two. Recipe: all images squashed to 224x224,
mirrored; half of each batch of 256 corrupted; 40 epochs of SGD with momentum .9, weight decay 1e-4
and learning rate .1, a tenth of it after 20 and 30. --config.train.reading=code trains as the
released code does (docs/reproduce.md, where papers and code differ). The corruptions are those of
ImageNet-NOC's Figures 3 and 8; --config.study.corruptions names others. The papers' images of frost
are ImageNet-C's photographs: --config.frost=FOLDER.

Expected: 24 trainings an architecture; not run yet, it wants an accelerator (the authors: a week on
a V100 for ResNet-18). `smoke` is a small network on the embedded dataset with a fifth of the epochs
and two corruptions, under a minute on 2 CPU cores: it shows that the command runs, nothing else.
"""

from configs import default

MODELS = ("resnet18", "densenet121", "wide_resnet50_2")


def get_config(variant="resnet18"):
    if variant not in (*MODELS, "smoke"):
        raise ValueError(f"expected overlap_imagenet100.py:{', :'.join(MODELS)} or :smoke, found {variant!r}")
    config = default.get_config()
    config.eval.batch_size = 250
    train = config.train
    train.epochs, train.milestones, train.decay_factor = 40, (20, 30), 0.1
    train.batch_size, train.learning_rate, train.momentum, train.weight_decay = 256, 0.1, 0.9, 1e-4
    if variant == "smoke":
        config.dataset.train_limit, config.dataset.test_limit = 1500, 400
        train.epochs, train.milestones = 8, (4, 6)
        train.batch_size, train.learning_rate = 50, 0.05
        config.eval.batch_size = 100
        config.study.corruptions = ("noc/border", "noc/hue")
        return config
    config.dataset.name = "imagenet100"
    config.dataset.image_size = 224
    config.dataset.resize = "squash"
    config.model.name = variant
    config.study.corruptions = ("imagenet_c", "imagenet_noc")
    return config
