"""A small vision transformer, which has no BatchNorm, on CIFAR-10: a network to adapt on streams.

python train.py --config=configs/vit.py --workdir=runs/small_vit --config.dataset.data_dir=DIR
python train.py --config=configs/vit.py:tiny --workdir=runs/vit_tiny --config.dataset.data_dir=DIR
python train.py --config=configs/vit.py:smoke --workdir=runs/vit_smoke

`small_vit` has 4 blocks of width 96 and 65 tokens; `tiny` is DeiT-tiny with patches of 4 pixels (5,362,762 parameters), for an
accelerator. SGD with Nesterov momentum and a warm-up, mirroring and crops, which a study of noc/translation would not have.
Expected: not yet measured. `smoke` trains for two epochs on the embedded dataset: it shows that this runs.
"""

from configs import default, scheme


def get_config(variant="small"):
    if variant not in ("small", "tiny", "smoke"):
        raise ValueError(f"expected vit.py, vit.py:tiny or vit.py:smoke, found {variant!r}")
    config = default.get_config()
    config.dataset.name = "cifar10"
    config.model.name = "cifar_vit_tiny" if variant == "tiny" else "small_vit"
    train = config.train
    train.epochs = 100 if variant == "tiny" else 30
    train.batch_size, train.learning_rate, train.momentum, train.nesterov = 128, 0.05, 0.9, True
    train.schedule, train.warmup_epochs, train.weight_decay, train.crop = "cosine", 5, 5e-4, 4
    if variant == "smoke":
        scheme.shrink(config)
        config.model.name, train.warmup_epochs = "small_vit", 1
    return config
