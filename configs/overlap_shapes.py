"""The demo: overlap of nine corruptions on the embedded dataset, up to a selected benchmark.

python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes

Expected on 2 CPU cores: 3 minutes; standard model 94.9 % on clean images, gaussian and impulse
noise overlap .93 +- .03, fog and contrast .52 +- .06, border and obstruction .05 +- .12 (one seed,
1,000 test images; docs/results/details.md has what other seeds gave).
"""

from configs import default


def get_config():
    config = default.get_config()
    config.dataset.test_limit = 1000
    config.train.epochs = 6
    config.train.batch_size = 64
    config.train.schedule = "cosine"
    config.train.warmup_epochs = 1
    config.train.checkpoint_epochs = 6
    config.study.corruptions = (
        "imagenet_c/gaussian_noise",
        "imagenet_c/impulse_noise",
        "imagenet_c/defocus_blur",
        "imagenet_c/fog",
        "imagenet_c/contrast",
        "imagenet_c/pixelate",
        "noc/obstruction",
        "noc/border",
        "noc/hue",
    )
    return config
