"""How a model is trained: `train`."""

from evaluation import enhancements
from runtime.schema import Setting, choice, number, several, switch, text, whole, word
from training.schema import named

_PATH = "a path, or ''"

SETTINGS = {
    "train.corruption": word(
        "what part of each batch is shown under", "'standard', a corruption, or 'mixture=BENCHMARK'", named.training
    ),
    "train.corruption_options": Setting(
        "static options of corruptions, which `ranges` adds to",
        "{corruption: {option: value}}",
        named.corruption_options,
    ),
    "train.corrupted_fraction": number("share of each batch that is corrupted", 0, 1),
    "train.reading": choice(
        "of the overlap papers; code: every image twice an epoch, clean and corrupted, momentum forgotten at milestones, "
        "model.init xavier and no normalisation unless they are given",
        "paper",
        "code",
    ),
    "train.flip": switch("mirror with probability 1/2"),
    "train.flip_alternates": switch("draw each image's mirroring once and alternate it from epoch to epoch"),
    "train.crop": whole(
        "pad by so many pixels and crop at random (papers on CIFAR augmentation: 4); 0 is none", 0, 4096
    ),
    "train.random_resized_crop": whole(
        "side in pixels of random boxes, resized, cut from training images (ImageNet: 224 with dataset.train_size 256); 0 is none",
        0,
        4096,
    ),
    "train.random_crop": whole(
        "side in pixels of boxes cut at random from training images, not resized (224 of dataset.train_size 256); 0 is none",
        0,
        4096,
    ),
    "train.enhance": choice(
        "of training images, last before the network; eval.enhance says which at test time",
        "",
        *enhancements.of_pixels(),
    ),
    "train.scheme": word(
        "augmentation of every image: augmix, autoaugment_cifar, patch_gaussian, augmix=rotate+equalize, stored=FILE",
        named.SCHEME,
        named.scheme,
    ),
    "train.transforms": text("where stored transforms lie; set from scheme=stored=FILE", _PATH),
    "train.mix_in.name": word(
        "a second dataset of the same classes, shown too (Stylized-ImageNet is an image_folder)",
        "a dataset of data.names(), or ''",
        named.dataset_or_none,
    ),
    "train.mix_in.data_dir": text("where it is; '' is dataset.data_dir", _PATH),
    "train.jsd_weight": number("of AugMix's consistency loss over two views (its authors: 12); 0 is none", 0),
    "train.stability_weight": number(
        "of the agreement of predictions on noisy copies, stability training (the draft: .01, .05, .1); 0 is none", 0
    ),
    "train.stability_noise": number("of these copies: uniform within so much of a pixel in [0, 1]", 0, 1),
    "train.mixup": switch("train on mixtures of two images of a batch, each of a uniform share"),
    "train.epochs": whole("times that training shows all images", 0, 1_000_000),
    "train.batch_size": whole("images in a step", 1, 2**20),
    "train.label_smoothing": number("share of the target that is spread evenly over all classes", 0, 1, below=True),
    "train.schedule": choice("of the learning rate", "step", "cosine", "triangle"),
    "train.learning_rate": number("of SGD, at its highest", 0, above=True),
    "train.milestones": several("epochs at which the step schedule decays", whole("", 1), order="rising"),
    "train.decay_factor": number("of the learning rate at each milestone", 0, 1, above=True),
    "train.warmup_epochs": number("epochs in which the cosine and the triangle schedule rise", 0),
    "train.momentum": number("of SGD: share of the last step that is kept", 0, 1, below=True),
    "train.nesterov": switch("Nesterov's momentum"),
    "train.weight_decay": number("factor of the parameters that is added to their gradient", 0),
    "train.batch_norm": word(
        "images that statistics are taken over: of a batch, of a device's part, of G parts; running: none, they stay",
        "'synchronised', 'per_device', 'groups=G' or 'running'",
        named.norm,
    ),
    "train.checkpoint_epochs": whole("save every so many epochs, and at the end", 1),
    "train.tensorboard": Setting(
        "write metrics to the folder tensorboard of a run, too (needs tensorboardX)", "True or False", named.tensorboard
    ),
    "train.init_from": text(
        "start from a trained model: a workdir, or a file of weights; in overlap.py `standard`, the study's own",
        "a path, 'standard', or ''",
    ),
    "train.frozen": choice(
        "weights of the model to start from that stay: `backbone`, all but those of the last layer, which is drawn anew",
        "",
        "backbone",
    ),
}
