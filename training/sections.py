"""Every setting of the commands that take a config: default, meaning and range, stated here and nowhere else.

Each section of a config is a frozen dataclass. Commands make the section that a function needs from their config
and hand on nothing more: `EvalSettings.of(config.eval)`. configs/default.py, the checks before anything is written
(`training.rules.check`), `--help` and docs/reference/settings.md come from these fields.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from corruptions import enhance as enhancements
from data.natural.sets import listed as natural_sets
from runtime.schema import (
    SWITCH,
    Kind,
    Section,
    choice,
    group,
    number,
    or_empty,
    setting,
    several,
    text,
    whole,
    word,
    words,
)
from training import names

_PATH = text("a path, or ''")
_SEED = whole(0, 2**64 - 1)
_SIDE = whole(0, 4096)  # pixels; 0 leaves it off
_BATCH = whole(1, 2**20)
_SHARE = number(0, 1)
_POSITIVE = number(0, above=True)
_CORRUPTION = word("a corruption", names.one_corruption)
_CORRUPTIONS = ("a corruption or a benchmark", names.corruption)
_SEVERITY = word(names.SEVERITY, names.severity)
_SCHEME = word(names.SCHEME, names.scheme)
_FOLDER = word("the name of a folder", names.folder)


@dataclasses.dataclass(frozen=True)
class DataSettings(Section):
    """`dataset`: images and their classes."""

    name: str = setting("shapes", "name of the dataset", word("a dataset of data.names()", names.dataset))
    data_dir: str = setting("", "folder of prepared datasets; '' is TFDS_DATA_DIR or ~/tensorflow_datasets", _PATH)
    seed: int = setting(0, "seed of the drawing of shapes, and of random splits", whole(0, 2**32 - 1))
    image_size: int = setting(
        32, "side of the images in pixels, for shapes, ImageNet and image folders", whole(8, 4096)
    )
    train_size: int = setting(0, "side in pixels of training images kept larger for crops; 0 is image_size", _SIDE)
    resize: str = setting(
        "crop",
        "how images of any size become square: shorter side (256 for 224), then the centre; or both sides, unequally",
        choice("crop", "squash"),
    )
    placement: str = setting(
        "auto",
        "where images are kept: in device memory, streamed from the host, or as they fit",
        choice("auto", "device", "stream"),
    )
    train_limit: int = setting(0, "number of training images, balanced over classes; 0 is all", whole())
    test_limit: int = setting(0, "number of test images, balanced over classes; 0 is all", whole())


@dataclasses.dataclass(frozen=True)
class ModelSettings(Section):
    """`model`: the network. Settings without a default are options that some networks have."""

    name: str = setting("small_resnet", "name of the network", word("a model of models.names()", names.model))
    dtype: str = setting(
        "",
        "type of the computation; '' is bfloat16 on accelerators and float32 on a CPU",
        choice("", "float32", "bfloat16", "float16"),
    )
    checkpoint: str = setting(
        "", "file of torchvision's weights, .safetensors or .pth, for eval.py, tools.calibrate and tools.msd", _PATH
    )
    class_stride: int = setting(
        1, "distance of the classes kept of imported weights: 10 keeps those of ImageNet-100", whole(1, 1000)
    )
    mean: tuple[float, ...] = setting(
        (),
        "mean of the image channels in [0, 1], for normalisation; () is the network's",
        or_empty(several(_SHARE, 3, 3, order="any"), ()),
    )
    std: tuple[float, ...] = setting(
        (),
        "standard deviation of the image channels, for normalisation; () is the network's",
        or_empty(several(number(0, 1, above=True), 3, 3, order="any"), ()),
    )
    init: str = setting(
        "",
        "rule of the initial parameters; '' is `he`, usual for the family",
        or_empty(choice("he", "xavier", "goyal"), ""),
    )
    stem: int = setting(None, "channels of the first convolution, in some families", whole(1, 4096))
    widths: tuple[int, ...] = setting(
        None, "channels of the stages, in some families", several(whole(1, 65536), 1, order="any")
    )
    scale: float = setting(None, "factor of the logits of fast_cifar", _POSITIVE)
    dropout: float = setting(
        None, "share of activations dropped in training, in some families", number(0, 1, below=True)
    )
    conv: str = setting(None, "how convolutions are computed", choice("auto", "cpu", "xla"))
    memory_efficient: bool = setting(None, "recompute activations of DenseNets instead of keeping them", SWITCH)
    exits: int = setting(None, "number of answers of an MSDNet, each deeper than the one before", whole(1, 100))
    step: int = setting(None, "layers between two exits of an MSDNet", whole(1, 100))
    base: int = setting(None, "layers before the first exit of an MSDNet", whole(1, 100))


@dataclasses.dataclass(frozen=True)
class MixInSettings(Section):
    """`train.mix_in`: a second dataset to train on."""

    name: str = setting(
        "",
        "second dataset of the same classes to train on (Stylized-ImageNet is an image_folder)",
        word("a dataset of data.names(), or ''", names.dataset_or_none),
    )
    data_dir: str = setting("", "folder of the second dataset; '' is dataset.data_dir", _PATH)


@dataclasses.dataclass(frozen=True)
class TrainSettings(Section):
    """`train`: how a model is trained."""

    corruption: str = setting(
        "standard",
        "corruption applied to `corrupted_fraction` of each batch",
        word("'standard', a corruption, or 'mixture=BENCHMARK'", names.training),
    )
    corruption_options: Mapping[str, Mapping[str, Any]] = setting(
        {},
        "static options of corruptions; `ranges`, `frost` and `style` add to them",
        Kind("{corruption: {option: value}}", names.corruption_options),
    )
    corrupted_fraction: float = setting(0.5, "share of each batch that is corrupted", _SHARE)
    reading: str = setting(
        "paper",
        "which reading of the overlap papers to follow; code: every image twice an epoch, clean and corrupted, momentum "
        "forgotten at milestones, model.init xavier and no normalisation unless they are set",
        choice("paper", "code"),
    )
    flip: bool = setting(True, "mirror with probability 1/2", SWITCH)
    flip_alternates: bool = setting(
        False, "draw once whether an image is mirrored, and alternate from epoch to epoch", SWITCH
    )
    crop: int = setting(
        0, "pixels of padding before a random crop (papers on CIFAR augmentation: 4); 0 is no crop", _SIDE
    )
    random_resized_crop: int = setting(
        0,
        "side in pixels to which random boxes are resized (ImageNet: 224 with dataset.train_size 256); 0 is none",
        _SIDE,
    )
    random_crop: int = setting(
        0, "side in pixels of boxes cut at random, not resized (224 of dataset.train_size 256); 0 is none", _SIDE
    )
    enhance: str = setting(
        "",
        "enhancement of training images, the last step before the network; eval.enhance is the one at test time",
        choice("", *enhancements.of_pixels()),
    )
    scheme: str = setting(
        "",
        "augmentation of every image: augmix, autoaugment_cifar, patch_gaussian, augmix=rotate+equalize, stored=FILE",
        _SCHEME,
    )
    transforms: str = setting("", "file of stored transforms; commands set it from scheme=stored=FILE", _PATH)
    jsd_weight: float = setting(
        0.0, "weight of AugMix's consistency loss over two views (its authors: 12); 0 is none", number(0)
    )
    stability_weight: float = setting(
        0.0,
        "weight of the agreement of predictions on noisy copies, stability training (the draft: .01, .05, .1); 0 is none",
        number(0),
    )
    stability_noise: float = setting(0.0, "bound of the uniform noise of these copies, of pixels in [0, 1]", _SHARE)
    mixup: bool = setting(False, "train on mixtures of two images of a batch, each with a uniform share", SWITCH)
    epochs: int = setting(40, "epochs of training", whole(0, 1_000_000))
    batch_size: int = setting(256, "images in a step", _BATCH)
    label_smoothing: float = setting(
        0.0, "share of the target that is spread evenly over all classes", number(0, 1, below=True)
    )
    schedule: str = setting("step", "course of the learning rate", choice("step", "cosine", "triangle"))
    learning_rate: float = setting(0.1, "highest learning rate of SGD", _POSITIVE)
    milestones: tuple[int, ...] = setting(
        (20, 30), "epochs at which the step schedule decays", several(whole(1), order="rising")
    )
    decay_factor: float = setting(0.1, "factor of the learning rate at each milestone", number(0, 1, above=True))
    warmup_epochs: float = setting(0, "epochs in which the cosine and the triangle schedule rise", number(0))
    momentum: float = setting(0.9, "momentum of SGD: share of the last step that is kept", number(0, 1, below=True))
    nesterov: bool = setting(False, "Nesterov's momentum", SWITCH)
    weight_decay: float = setting(1e-4, "factor of the parameters that is added to their gradient", number(0))
    batch_norm: str = setting(
        "synchronised",
        "images whose statistics BatchNorm takes: a batch, a device's part, one of G parts; running: none, they stay",
        word("'synchronised', 'per_device', 'groups=G' or 'running'", names.batch_norm),
    )
    checkpoint_epochs: int = setting(1, "epochs between two checkpoints; the end has one too", whole(1))
    tensorboard: bool = setting(
        False,
        "write metrics to the folder tensorboard of a run, too (needs tensorboardX)",
        Kind("True or False", names.tensorboard),
    )
    init_from: str = setting(
        "",
        "trained model to start from: a workdir, or a file of weights; in overlap.py `standard`, the study's own",
        text("a path, 'standard', or ''"),
    )
    frozen: str = setting(
        "",
        "weights of that model that stay: `backbone`, all but those of the last layer, which is drawn anew",
        choice("", "backbone"),
    )
    mix_in: MixInSettings = group(MixInSettings)


@dataclasses.dataclass(frozen=True)
class EvalSettings(Section):
    """`eval`: the images that trained models are tested on."""

    seed: int = setting(0, "seed of the corrupted test sets, the same for every model", _SEED)
    corruptions: tuple[str, ...] = setting(
        ("imagenet_c", "imagenet_noc"), "corruptions and benchmarks to evaluate under", words(*_CORRUPTIONS)
    )
    severity: str = setting("random", "random, levels, or numbers: 1,3,5 (levels) or 0,0.5,1 (fractions)", _SEVERITY)
    stored: str = setting(
        "", "stored corrupted dataset in place of eval.corruptions (eval.py)", text("a folder, a tfds name, or ''")
    )
    verify: bool = setting(
        False, "compare all files of a stored dataset with their sha256, not only changed ones", SWITCH
    )
    natural: str = setting(
        "",
        "naturally shifted test sets to evaluate on too: imagenet_r,objectnet (eval.py)",
        word("names of data.natural.NAMES, separated by commas, or ''", natural_sets),
    )
    natural_dir: str = setting(
        "", "folder that holds these sets; '' is the folder of tfds datasets", text("a folder, or ''")
    )
    batch_size: int = setting(500, "images at a time", _BATCH)
    reference: str = setting(
        "",
        "reference whose errors CE and mCE are relative to; '' is AlexNet where its published errors hold",
        text("alexnet, a file, an evaluated workdir, or ''"),
    )
    reference_mismatch: str = setting(
        "refuse", "how to treat a named reference that holds for other conditions", choice("refuse", "label")
    )
    enhance: str = setting(
        "", "enhancement of every test image before the networks see it (eval.py)", choice("", *enhancements.names())
    )
    adapt: str = setting("", "test: BatchNorm statistics of each corrupted test set (eval.py)", choice("", "test"))
    pseudo_count: float = setting(
        0.0, "number of images that the statistics from training count as, against one for each test image", number(0)
    )


@dataclasses.dataclass(frozen=True)
class AdaptSettings(Section):
    """`adapt`: BatchNorm statistics of augmented training images (tools.adapt)."""

    scheme: str = setting("augmix", "augmentation of the training images; '' is mirror and crop alone", _SCHEME)
    images: int = setting(10000, "number of training images", whole(2))
    batch_size: int = setting(
        500, "images at a time; each layer sees the others normalised by the statistics of its batch", whole(2, 2**20)
    )
    pseudo_count: float = setting(
        0.0, "number of images that the statistics from training count as; 0 replaces them", number(0)
    )
    seed: int = setting(0, "seed of the choice of images and of their augmentation", _SEED)


def _finetune(key: str, default: Any) -> Any:
    """States a setting of `train` for fine-tuning: another default, the same meaning and range."""
    one = TrainSettings.settings()[key]
    return setting(default, one.meaning, one.kind)


@dataclasses.dataclass(frozen=True)
class FinetuneSettings(Section):
    """`study.finetune`: settings of `train` that differ for models that start from the standard one.

    A config file may add any other setting of `train`.
    """

    epochs: int = _finetune("epochs", 1)
    learning_rate: float = _finetune("learning_rate", 0.02)
    schedule: str = _finetune("schedule", "cosine")
    warmup_epochs: float = _finetune("warmup_epochs", 0)


@dataclasses.dataclass(frozen=True)
class StudySettings(Section):
    """`study`: the models that a study trains."""

    corruptions: tuple[str, ...] = setting(
        (), "corruptions and benchmarks; overlap.py trains a model on each, and a standard one", words(*_CORRUPTIONS)
    )
    mixtures: tuple[str, ...] = setting(
        (),
        "mixtures that overlap.py trains on too, to see what they cover",
        words("'mixture=BENCHMARK'", names.mixture),
    )
    schemes: tuple[str, ...] = setting(
        (),
        "schemes that tools.scheme_study trains a model with: standard (none), augment.names(), NAME+jsd, augmix=* (512), "
        "stored=FOLDER/*.npz",
        words("a scheme's name", names.study_scheme),
    )
    enhancements: tuple[str, ...] = setting(
        (),
        "enhancements that projects.structural.enhancement_study tests; it trains with those after train=",
        words("an enhancement, or train=NAME", names.enhancement),
    )
    seeds: tuple[int, ...] = setting((0,), "seeds of the models of each training", several(_SEED, 1))
    parallel: int = setting(
        0, "models trained at once, each on devices of its own; 0: one a device, on a CPU one", whole(0, 65536)
    )
    threshold: float = setting(0.1, "largest overlap within the selected benchmark", _SHARE)
    finetune: FinetuneSettings = group(FinetuneSettings)


@dataclasses.dataclass(frozen=True)
class AdainSettings(Section):
    """`adain`: weights of style transfer (projects.structural.train_style_decoder)."""

    encoder: str = setting("", "file of the VGG-19, vgg_normalised.pth; '' draws random values", _PATH)
    decoder: str = setting("", "file of the first decoder, decoder.pth; '' draws random values", _PATH)
    widths: tuple[int, ...] = setting(
        (64, 128, 256, 512),
        "channels of the four stages of both; the public weights have 64, 128, 256, 512",
        several(whole(1, 4096), 4, 4, order="any"),
    )
    styles: str = setting(
        "", "pictures of styles; '' draws procedural textures", text("a folder of up to 10,000 images, or ''")
    )
    drawn: int = setting(100, "number of procedural textures", whole(1, 100_000))
    reading: str = setting(
        "port", "formulas of the PyTorch port, or of the paper's own code", choice("port", "original")
    )
    steps: int = setting(160_000, "training steps of the decoder; 0 takes it as it is", whole())
    batch_size: int = setting(8, "contents in a step, and as many styles", _BATCH)
    learning_rate: float = setting(1e-4, "learning rate of Adam at its first step", _POSITIVE)
    style_weight: float = setting(
        10.0,
        "weight of the style loss; with the reading `original` 0.01 (the paper's code) or 0.1 (its released decoder)",
        number(0),
    )


@dataclasses.dataclass(frozen=True)
class ToySettings(Section):
    """`msd.toy`: mixtures of two corruptions (tools.msd)."""

    first: str = setting("imagenet_c/motion_blur", "first of the two corruptions to mix", _CORRUPTION)
    second: str = setting("imagenet_c/impulse_noise", "second of the two corruptions to mix", _CORRUPTION)
    severity: str = setting("3", "severity of both, one number", _SEVERITY)
    fractions: tuple[float, ...] = setting((0.0, 0.5, 0.9, 0.99, 1.0), "shares of the first", several(_SHARE, 1))
    out: str = setting("toy", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class SubsetsSettings(Section):
    """`msd.subsets`: closest, random and farthest transforms (tools.msd)."""

    scheme: str = setting("augmix", "scheme whose transforms are drawn", _SCHEME)
    pool: int = setting(4000, "number of transforms that are put in order; the paper takes 100,000", whole(1))
    sizes: tuple[int, ...] = setting((10, 100, 1000), "sizes of the subsets, up to the pool", several(whole(1), 1))
    out: str = setting("subsets", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class ResamplingSettings(Section):
    """`msd.resampling`: spread of distances over images and draws (tools.msd)."""

    scheme: str = setting("augmix", "scheme of the transforms whose distance is measured", _SCHEME)
    pairs: int = setting(20, "pairs of a transform and a corruption; the paper takes 100", whole(1))
    resamplings: int = setting(
        20, "resamplings of each pair, with other images and draws; the paper takes 100", whole(2)
    )
    images: tuple[int, ...] = setting((10, 20, 50, 100), "numbers of images", several(whole(1), 1, order="rising"))
    draws: tuple[int, ...] = setting((10, 20, 50, 100), "numbers of draws", several(whole(1), 1, order="rising"))
    out: str = setting("resampling", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class MsdSettings(Section):
    """`msd`: distances of augmentation schemes to corruptions (tools.msd)."""

    model: str = setting(
        "standard", "training of the model of the workdir that gives the features", text("a model's name")
    )
    model_seed: int = setting(0, "seed of that model", _SEED)
    seed: int = setting(0, "seed of the choice of images and of all draws", _SEED)
    images: int = setting(100, "training images, without mirroring or cropping", whole(1))
    schemes: tuple[str, ...] = setting(
        ("standard", "autoaugment_cifar", "augmix", "patch_gaussian"),
        "schemes: standard (no augmentation), augment.names(), augmix=* (512), corruptions, benchmarks",
        words("a scheme's name", names.not_empty),
    )
    transforms: int = setting(
        1000, "transforms drawn for each scheme; the paper's figures take 100,000 (configs/msd.py:paper)", whole(1)
    )
    corruptions: tuple[str, ...] = setting(
        ("imagenet_c",), "corruptions and benchmarks to which distances are measured", words(*_CORRUPTIONS, least=1)
    )
    severity: str = setting("levels", "severities, as eval.severity", _SEVERITY)
    draws: int = setting(100, "draws of each corruption and severity, averaged to its centre", whole(1))
    halves: int = setting(
        20, "random halves of images, transforms and draws behind the spread; 0 is none", whole(0, 100_000, but=1)
    )
    chunk: int = setting(0, "transforms at a time, for speed and memory only; 0 fits the device", whole())
    errors: str = setting(
        "",
        "evaluated workdirs with the schemes as models: correlates distance with error",
        text("a pattern of paths, or ''"),
    )
    out: str = setting("msd", "folder of results in the workdir", _FOLDER)
    toy: ToySettings = group(ToySettings)
    subsets: SubsetsSettings = group(SubsetsSettings)
    resampling: ResamplingSettings = group(ResamplingSettings)


@dataclasses.dataclass(frozen=True)
class SearchSettings(Section):
    """`search`: C-bar's search for a benchmark (tools.cbar)."""

    seeds: tuple[int, ...] = setting(
        (), "seeds of the networks that give the features, one for each of study.seeds", several(_SEED)
    )
    images: int = setting(100, "training images behind the features, without mirroring or cropping", whole(1))
    draws: int = setting(
        100, "draws of each corruption and level, each applied to all images; 0: a draw for each image", whole()
    )
    target: float = setting(
        0.0,
        "mean error in percent of the benchmark to be made; 0 is that of the networks on ImageNet-C",
        number(0, 100),
    )
    seed: int = setting(0, "seed of the images, the draws and the random benchmarks; each run adds its number", _SEED)


@dataclasses.dataclass(frozen=True)
class CalibrateSettings(Section):
    """`calibrate`: severity ranges (tools.calibrate)."""

    corruptions: tuple[str, ...] = setting(
        ("noc_candidates",), "corruptions and benchmarks to calibrate", words(*_CORRUPTIONS, least=1)
    )
    targets: tuple[float, ...] = setting(
        (0.95, 0.5),
        "R of the standard model at the mild and at the severe end",
        several(number(0, 1, above=True, below=True), 2, 2),
    )
    images: int = setting(5000, "test images that R is measured on, balanced over classes; 0 is all", whole())
    seed: int = setting(0, "seed of the draws", _SEED)


@dataclasses.dataclass(frozen=True)
class Settings(Section):
    """All settings of a command."""

    seed: int = setting(0, "seed of initial parameters, order, mirroring and all draws of training", _SEED)
    ranges: str = setting(
        "", "calibrated severity ranges, a file of tools.calibrate; '' are the benchmarks' own", _PATH
    )
    frost: str = setting(
        "",
        "photographs that imagenet_c/frost lays over images, such as ImageNet-C's five; '' draws procedural textures",
        text("a folder of images, or ''"),
    )
    style: str = setting(
        "",
        "weights of structural/style_transfer, a file of projects.structural.train_style_decoder, read by projects.structural.style",
        _PATH,
    )
    imports: tuple[str, ...] = setting(
        (), "modules imported first, such as one that registers your corruptions", several(text("a module"))
    )
    dataset: DataSettings = group(DataSettings)
    model: ModelSettings = group(ModelSettings)
    train: TrainSettings = group(TrainSettings)
    eval: EvalSettings = group(EvalSettings)
    adapt: AdaptSettings = group(AdaptSettings)
    study: StudySettings = group(StudySettings)
    adain: AdainSettings = group(AdainSettings)
    msd: MsdSettings = group(MsdSettings)
    search: SearchSettings = group(SearchSettings)
    calibrate: CalibrateSettings = group(CalibrateSettings)


SETTINGS = Settings.settings()
"""{dotted key: its Setting}."""


def default_config() -> ConfigDict:
    """Makes the config of all defaults."""
    return ConfigDict(Settings.defaults())
