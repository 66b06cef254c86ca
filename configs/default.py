"""One model on the embedded dataset, and every setting there is.

    python train.py --config=configs/default.py --workdir=runs/default

Expected: 40 epochs of the papers' recipe at about 3,000 images a second on 2 free CPU cores; the
training images are learned by heart after some 25 epochs. For a good model in half a minute see
configs/overlap_shapes.py.

Settings are overridden on the command line, `--config.seed=3 --config.train.epochs=10`; a misspelt
name is answered with a suggestion.
"""

from ml_collections import ConfigDict


def get_config():
    return ConfigDict(
        {
            "seed": 0,
            "ranges": "",  # calibrated severity ranges, a file of tools.calibrate
            "dataset": {
                "name": "shapes",  # shapes, cifar10, cifar100, imagenet100, imagenet, or image_folder
                "data_dir": "",  # where prepared datasets are; "" is TFDS_DATA_DIR or ~/tensorflow_datasets
                "seed": 0,  # of the drawing of shapes
                "image_size": 32,  # for shapes, ImageNet and image folders
                "train_size": 0,  # of training images kept larger, for random_resized_crop; 0 is image_size
                "placement": "auto",  # of images: device (in its memory), stream (from the host), or auto: as they fit
                "train_limit": 0,  # use only so many images, balanced over classes; 0 is all
                "test_limit": 0,
            },
            "model": {
                "name": "small_resnet",  # see models.names()
                "dtype": "",  # computation: "" is bfloat16 on accelerators and float32 on CPU
                "checkpoint": "",  # eval.py, tools.calibrate, tools.msd import torchvision's weights, .safetensors or .pth
                "class_stride": 1,  # of the import: 10 keeps the logits of ImageNet-100's classes
            },
            "train": {
                "corruption": "standard",  # standard, a corruption, or mixture=BENCHMARK
                "corruption_options": {},  # corruption name -> its static options; `ranges` adds to them
                "corrupted_fraction": 0.5,  # of each batch
                "reading": "paper",  # paper: half of each batch; code: every image twice an epoch, clean and corrupted
                "flip": True,  # mirror with probability 1/2
                "flip_alternates": False,  # each image is drawn once and then mirrored every second epoch
                "crop": 0,  # pad by so many pixels and crop at random (papers on CIFAR augmentation: 4)
                # side of random boxes, resized, cut from training images (ImageNet: 224 with
                # dataset.train_size 256)
                "random_resized_crop": 0,
                # of every image: augmix, autoaugment_cifar, patch_gaussian, augmix=rotate+equalize,
                # stored=FILE
                "scheme": "",
                "transforms": "",  # where stored transforms lie; set from scheme=stored=FILE
                "mix_in": {  # a second dataset of the same classes; an epoch shows its training images too
                    "name": "",  # as dataset.name; Stylized-ImageNet is an image_folder
                    "data_dir": "",  # "" is dataset.data_dir
                },
                "jsd_weight": 0.0,  # of AugMix's consistency loss over two views (its authors: 12)
                "epochs": 40,
                "batch_size": 256,
                "label_smoothing": 0.0,  # share of the target that is spread evenly over all classes
                "schedule": "step",  # step, cosine or triangle
                "learning_rate": 0.1,
                "milestones": (20, 30),  # epochs at which the step schedule decays
                "decay_factor": 0.1,
                "warmup_epochs": 0,  # of the cosine and the triangle schedule
                "momentum": 0.9,
                "nesterov": False,
                "weight_decay": 1e-4,
                # or per_device, or groups=G: statistics of parts of a batch
                # (training/batch_norm.py)
                "batch_norm": "synchronised",
                "checkpoint_epochs": 1,  # save every so many epochs, and at the end
                "init_from": "",  # start from a trained model: a workdir; in overlap.py `standard`, the study's own
            },
            "eval": {
                "seed": 0,  # of the corrupted test sets, the same for every model
                "corruptions": ("imagenet_c", "imagenet_noc"),  # corruptions and benchmarks
                "severity": "random",  # random, levels, or numbers: 1,3,5 (levels) or 0,0.5,1 (fractions)
                "stored": "",  # a stored corrupted dataset (eval.py): folder or tfds name, in place of `corruptions`
                "batch_size": 500,
                "adapt": "",  # test: BatchNorm statistics of each corrupted test set (eval.py)
                "pseudo_count": 0.0,  # of the statistics from training, against one for each image adapted to
            },
            "adapt": {  # tools.adapt
                "scheme": "augmix",  # of the training images that give the statistics; "" is mirror and crop alone
                "images": 10000,
                "batch_size": 500,  # each layer sees the others normalised by the statistics of its batch
                "pseudo_count": 0.0,  # N of the statistics from training; 0 replaces them
                "seed": 0,
            },
            "study": {
                "corruptions": (),  # overlap.py trains one model on each, besides the standard one
                "mixtures": (),  # overlap.py trains on these too, e.g. ("mixture=imagenet_noc",): what do they cover?
                "seeds": (0,),
                "parallel": 0,  # models trained at once, each on devices of its own; 0: one a device, on a CPU one
                "threshold": 0.1,  # largest overlap within the selected benchmark
                "finetune": {  # settings of `train` that differ for models that start from another (train.init_from)
                    "epochs": 1,
                    "learning_rate": 0.02,
                    "schedule": "cosine",
                    "warmup_epochs": 0,
                },
            },
            "msd": {
                "model": "standard",  # which model of the workdir gives the features: what it was trained with
                "model_seed": 0,
                "seed": 0,  # of the images and of all draws
                "images": 100,  # training images, without mirroring or cropping
                # standard (no augmentation), schemes (augment.names()), augmix=* (512),
                # corruptions, benchmarks
                "schemes": ("standard", "autoaugment_cifar", "augmix", "patch_gaussian"),
                "transforms": 1000,  # drawn for each scheme; the paper's figures take 100,000
                "corruptions": ("imagenet_c",),  # corruptions and benchmarks
                "severity": "levels",  # as eval.severity
                "draws": 100,  # for each corruption and severity, averaged to its centre
                "halves": 20,  # random halves of images, transforms and draws behind the spread; 0 is none
                "chunk": 0,  # transforms at a time, for speed and memory only; 0 fits the device
                "errors": "",  # counts.csv with the schemes as models: correlates distance with error
                "out": "msd",  # folder of results in the workdir
                "toy": {  # tools.msd_toy: mixtures of two corruptions
                    "first": "imagenet_c/motion_blur",
                    "second": "imagenet_c/impulse_noise",
                    "severity": "3",
                    "fractions": (0.0, 0.5, 0.9, 0.99, 1.0),  # of the first
                    "out": "toy",
                },
                "subsets": {  # tools.msd_subsets
                    "scheme": "augmix",
                    "pool": 4000,  # transforms that are put in order; the paper takes 100,000
                    "sizes": (10, 100, 1000),
                    "out": "subsets",
                },
            },
            "calibrate": {
                "corruptions": ("noc_candidates",),  # corruptions and benchmarks
                "targets": (0.95, 0.5),  # R of the standard model at the mild and the severe end
                "images": 5000,  # test images R is measured on, balanced over classes; 0 is all
                "seed": 0,  # of the draws
            },
        }
    )
