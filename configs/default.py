"""One model on the embedded dataset, and every setting there is with its default.

    python train.py --config=configs/default.py --workdir=runs/default

Expected: 40 epochs of the papers' recipe at about 3,000 images a second on 2 free CPU cores; the
training images are learned by heart after some 25 epochs. For a good model in half a minute see
configs/overlap_shapes.py.

Settings are overridden on the command line, `--config.seed=3 --config.train.epochs=10`; a misspelt
name is answered with a suggestion. `python train.py --help` and docs/reference/settings.md say what
each means and which values it takes (training/schema).
"""

from ml_collections import ConfigDict


def get_config():
    return ConfigDict(
        {
            "seed": 0,
            "ranges": "",
            "frost": "",
            "style": "",
            "imports": (),
            "dataset": {
                "name": "shapes",
                "data_dir": "",
                "seed": 0,
                "image_size": 32,
                "train_size": 0,
                "resize": "crop",
                "placement": "auto",
                "train_limit": 0,
                "test_limit": 0,
            },
            "model": {
                "name": "small_resnet",
                "dtype": "",
                "checkpoint": "",
                "class_stride": 1,
                "mean": (),
                "std": (),
                "init": "",
            },
            "train": {
                "corruption": "standard",
                "corruption_options": {},
                "corrupted_fraction": 0.5,
                "reading": "paper",
                "flip": True,
                "flip_alternates": False,
                "crop": 0,
                "random_resized_crop": 0,
                "random_crop": 0,
                "enhance": "",
                "scheme": "",
                "transforms": "",
                "mix_in": {
                    "name": "",
                    "data_dir": "",
                },
                "jsd_weight": 0.0,
                "stability_weight": 0.0,
                "stability_noise": 0.0,
                "mixup": False,
                "epochs": 40,
                "batch_size": 256,
                "label_smoothing": 0.0,
                "schedule": "step",
                "learning_rate": 0.1,
                "milestones": (20, 30),
                "decay_factor": 0.1,
                "warmup_epochs": 0,
                "momentum": 0.9,
                "nesterov": False,
                "weight_decay": 1e-4,
                "batch_norm": "synchronised",
                "checkpoint_epochs": 1,
                "tensorboard": False,
                "init_from": "",
                "frozen": "",
            },
            "eval": {
                "seed": 0,
                "corruptions": ("imagenet_c", "imagenet_noc"),
                "severity": "random",
                "stored": "",
                "verify": False,
                "natural": "",
                "natural_dir": "",
                "batch_size": 500,
                "reference": "",
                "reference_mismatch": "refuse",
                "enhance": "",
                "adapt": "",
                "pseudo_count": 0.0,
            },
            "adapt": {
                "scheme": "augmix",
                "images": 10000,
                "batch_size": 500,
                "pseudo_count": 0.0,
                "seed": 0,
            },
            "study": {
                "corruptions": (),
                "mixtures": (),
                "schemes": (),
                "enhancements": (),
                "seeds": (0,),
                "parallel": 0,
                "threshold": 0.1,
                "finetune": {
                    "epochs": 1,
                    "learning_rate": 0.02,
                    "schedule": "cosine",
                    "warmup_epochs": 0,
                },
            },
            "adain": {
                "encoder": "",
                "decoder": "",
                "widths": (64, 128, 256, 512),
                "styles": "",
                "drawn": 100,
                "reading": "port",
                "steps": 160_000,
                "batch_size": 8,
                "learning_rate": 1e-4,
                "style_weight": 10.0,
            },
            "msd": {
                "model": "standard",
                "model_seed": 0,
                "seed": 0,
                "images": 100,
                "schemes": ("standard", "autoaugment_cifar", "augmix", "patch_gaussian"),
                "transforms": 1000,
                "corruptions": ("imagenet_c",),
                "severity": "levels",
                "draws": 100,
                "halves": 20,
                "chunk": 0,
                "errors": "",
                "out": "msd",
                "toy": {
                    "first": "imagenet_c/motion_blur",
                    "second": "imagenet_c/impulse_noise",
                    "severity": "3",
                    "fractions": (0.0, 0.5, 0.9, 0.99, 1.0),
                    "out": "toy",
                },
                "subsets": {
                    "scheme": "augmix",
                    "pool": 4000,
                    "sizes": (10, 100, 1000),
                    "out": "subsets",
                },
                "resampling": {
                    "scheme": "augmix",
                    "pairs": 20,
                    "resamplings": 20,
                    "images": (10, 20, 50, 100),
                    "draws": (10, 20, 50, 100),
                    "out": "resampling",
                },
            },
            "search": {
                "seeds": (),
                "images": 100,
                "draws": 100,
                "target": 0.0,
                "seed": 0,
            },
            "calibrate": {
                "corruptions": ("noc_candidates",),
                "targets": (0.95, 0.5),
                "images": 5000,
                "seed": 0,
            },
        }
    )
