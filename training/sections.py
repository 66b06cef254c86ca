"""Every setting of the commands that take a config: default, meaning and range, stated here and nowhere else.

Each section of a config is a frozen dataclass. Commands make the section that a function needs from their config
and hand on nothing more: `EvalSettings.of(config.eval)`. configs/default.py, the checks before anything is written
(`training.cli.check`), `--help` and docs/reference/settings.md come from these fields.
"""

import dataclasses
import importlib.util
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

import corruptions
import data
import models
from corruptions import enhance as enhancements
from data.natural.sets import listed as natural_sets
from runtime.settings import (
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
from training import augmentation


def _check_tensorboard(wanted: Any) -> None:
    SWITCH.check(wanted)
    if wanted and importlib.util.find_spec("tensorboardX") is None:
        raise ValueError("expected False, or the package tensorboardX, found none; pip install tensorboardX")


def _check_folder(name: str) -> None:
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"expected the name of a folder within the workdir, found {name!r}")


def _check_not_empty(name: str) -> None:
    if not name:
        raise ValueError("expected a name, found ''")


_PATH = text("a path, or ''")
_SEED = whole(0, 2**64 - 1)
_SIDE = whole(0, 4096)  # pixels; 0 leaves it off
_BATCH = whole(1, 2**20)
_SHARE = number(0, 1)
_POSITIVE = number(0, above=True)
_BELOW_1 = number(0, 1, below=True)
_CORRUPTION = word("a corruption", corruptions.get)
_SOME_CORRUPTIONS, _CORRUPTIONS = (
    words("a corruption or a benchmark", augmentation.check_corruption, least) for least in (0, 1)
)
_MIXTURES = words("'mixture=BENCHMARK'", augmentation.check_mixture)
_SCHEMES = words("a scheme's name", augmentation.check_study_scheme)
_ENHANCEMENTS = words("an enhancement, or train=NAME", augmentation.check_enhancement)
_ENHANCEMENT = word("'' or an enhancement, with settings: 'nlm:h=.6'", lambda name: name and enhancements.check(name))
_ENHANCEMENT_OF_IMAGES = word(
    f"'', {', '.join(enhancements.of_pixels())}, with settings or without: 'clahe:clip=4,grid=4x4'",
    lambda name: name and augmentation.check_enhancement_of_images(name),
)
_NAMES = words("a scheme's name", _check_not_empty)
_FOUR_SCHEMES = ("standard", "autoaugment_cifar", "augmix", "patch_gaussian")
_RESIZE = choice("crop", "squash")
_SEVERITY = word(augmentation.SEVERITY, augmentation.check_severity)
_SCHEME = word("a scheme of corruptions.augment.names(), or ''", augmentation.check_scheme)
_FOLDER = word("the name of a folder", _check_folder)
_PLACEMENT = choice("auto", "device", "stream")
_DTYPE = choice("", "float32", "bfloat16", "float16")
_CHANNELS = several(_SHARE, 3, 3, order="any")
_DEVIATIONS = several(number(0, 1, above=True), 3, 3, order="any")
_INIT = or_empty(choice("he", "xavier", "goyal"), "")
_WIDTHS = several(whole(1, 65536), 1, order="any")
_FOUR_WIDTHS = several(whole(1, 4096), 4, 4, order="any")
_DATASET = word("a dataset of data.names()", data.check_name)
_TRAINING = word("'standard', a corruption, or 'mixture=BENCHMARK'", augmentation.members)
_OPTIONS = Kind("{corruption: {option: value}}", augmentation.check_corruption_options)
_RISING, _SOME_RISING = (several(whole(1), least, order="rising") for least in (0, 1))
_BATCH_NORM = word("'synchronised', 'per_device', 'groups=G' or 'running'", augmentation.batch_norm)
_START = text("a path, 'standard', or ''")
_STORED = text("a folder, a tfds name, or ''")
_NATURAL = word("names of data.natural.NAMES, separated by commas, or ''", natural_sets)
_REFERENCE = text("alexnet, a file, an evaluated workdir, or ''")
_TARGETS = several(number(0, 1, above=True, below=True), 2, 2)


@dataclasses.dataclass(frozen=True)
class DataSettings(Section):
    """`dataset`: images and their classes."""

    name: str = setting("shapes", "name of the dataset", _DATASET)
    data_dir: str = setting("", "folder of prepared datasets; '' is TFDS_DATA_DIR or ~/tensorflow_datasets", _PATH)
    seed: int = setting(0, "seed of the drawing of shapes, and of random splits", whole(0, 2**32 - 1))
    image_size: int = setting(32, "side of images in pixels, for shapes, ImageNet and image folders", whole(8, 4096))
    train_size: int = setting(0, "side in pixels of training images kept larger for crops; 0 is image_size", _SIDE)
    resize: str = setting("crop", "how images become square: shorter side, then centre; or both sides", _RESIZE)
    turn: bool = setting(False, "turn images, frost and bank by EXIF data; False reads pixels as stored", SWITCH)
    placement: str = setting("auto", "place of the images: device memory, streamed, or as they fit", _PLACEMENT)
    train_limit: int = setting(0, "number of training images, balanced over classes; 0 is all", whole())
    test_limit: int = setting(0, "number of test images, balanced over classes; 0 is all", whole())


@dataclasses.dataclass(frozen=True)
class ModelSettings(Section):
    """`model`: the network. Settings without a default are options that some networks have."""

    name: str = setting("small_resnet", "name of the network", word("a model of models.names()", models.options))
    dtype: str = setting("", "type of the computation; '' is bfloat16 on accelerators and float32 on a CPU", _DTYPE)
    checkpoint: str = setting("", "file of torchvision's weights, for eval.py, tools.calibrate and tools.msd", _PATH)
    class_stride: int = setting(1, "imported weights: keep every so many-th class, 10 for ImageNet-100", whole(1, 1000))
    mean: tuple[float, ...] = setting(
        (), "mean of the channels in [0, 1]; () is the network's", or_empty(_CHANNELS, ())
    )
    std: tuple[float, ...] = setting((), "deviation of the channels; () is the network's", or_empty(_DEVIATIONS, ()))
    init: str = setting("", "rule of the initial parameters; '' is `he`, usual for the family", _INIT)
    stem: int = setting(None, "channels of the first convolution, in some families", whole(1, 4096))
    widths: tuple[int, ...] = setting(None, "channels of the stages, in some families", _WIDTHS)
    scale: float = setting(None, "factor of the logits of fast_cifar", _POSITIVE)
    dropout: float = setting(None, "share of activations dropped in training, in some families", _BELOW_1)
    conv: str = setting(None, "how convolutions are computed", choice("auto", "cpu", "xla"))
    memory_efficient: bool = setting(None, "recompute activations of DenseNets instead of keeping them", SWITCH)
    exits: int = setting(None, "number of answers of an MSDNet, each deeper than the one before", whole(1, 100))
    step: int = setting(None, "layers between two exits of an MSDNet", whole(1, 100))
    base: int = setting(None, "layers before the first exit of an MSDNet", whole(1, 100))


@dataclasses.dataclass(frozen=True)
class MixInSettings(Section):
    """`train.mix_in`: a second dataset to train on."""

    name: str = setting("", "second dataset of the same classes, or ''", or_empty(_DATASET, ""))
    data_dir: str = setting("", "folder of the second dataset; '' is dataset.data_dir", _PATH)


@dataclasses.dataclass(frozen=True)
class TrainSettings(Section):
    """`train`: how a model is trained."""

    corruption: str = setting("standard", "corruption applied to `corrupted_fraction` of each batch", _TRAINING)
    corruption_options: Mapping[str, Any] = setting(
        {}, "static options; ranges, frost, bank, style add to them", _OPTIONS
    )
    corrupted_fraction: float = setting(0.5, "share of each batch that is corrupted", _SHARE)
    reading: str = setting(
        "paper",
        "which reading of the overlap papers to follow; code: every image twice an epoch, clean and corrupted, momentum "
        "forgotten at milestones, model.init xavier and no normalisation unless they are set",
        choice("paper", "code"),
    )
    flip: bool = setting(True, "mirror with probability 1/2", SWITCH)
    flip_alternates: bool = setting(False, "draw mirroring once and alternate it from epoch to epoch", SWITCH)
    crop: int = setting(0, "pixels of padding before a random crop (CIFAR papers: 4); 0 is no crop", _SIDE)
    random_resized_crop: int = setting(0, "side of random boxes, resized (ImageNet: 224); 0 is none", _SIDE)
    random_crop: int = setting(0, "side of random boxes, not resized (224 of dataset.train_size 256); 0 is none", _SIDE)
    enhance: str = setting("", "enhancement of the network's training images", _ENHANCEMENT_OF_IMAGES)
    scheme: str = setting("", "augmentation of every image: augmix, augmix=rotate+equalize, stored=FILE ...", _SCHEME)
    transforms: str = setting("", "file of stored transforms; commands set it from scheme=stored=FILE", _PATH)
    jsd_weight: float = setting(
        0.0, "weight of AugMix's consistency loss over three views (its authors: 12)", number(0)
    )
    stability_weight: float = setting(0.0, "weight of stability training: agreement on noisy copies", number(0))
    stability_noise: float = setting(0.0, "bound of the uniform noise of the noisy copies, in [0, 1]", _SHARE)
    mixup: bool = setting(False, "train on mixtures of two images of a batch, each with a uniform share", SWITCH)
    epochs: int = setting(40, "epochs of training", whole(0, 1_000_000))
    batch_size: int = setting(256, "images in a step", _BATCH)
    label_smoothing: float = setting(0.0, "share of the target that is spread evenly over all classes", _BELOW_1)
    schedule: str = setting("step", "course of the learning rate", choice("step", "cosine", "triangle"))
    learning_rate: float = setting(0.1, "highest learning rate of SGD", _POSITIVE)
    milestones: tuple[int, ...] = setting((20, 30), "epochs at which the step schedule decays", _RISING)
    decay_factor: float = setting(0.1, "factor of the learning rate at each milestone", number(0, 1, above=True))
    warmup_epochs: float = setting(0, "epochs in which the cosine and the triangle schedule rise", number(0))
    momentum: float = setting(0.9, "momentum of SGD: share of the last step that is kept", _BELOW_1)
    nesterov: bool = setting(False, "Nesterov's momentum", SWITCH)
    weight_decay: float = setting(1e-4, "factor of the parameters that is added to their gradient", number(0))
    batch_norm: str = setting("synchronised", "statistics of a batch, a device, G parts, or running", _BATCH_NORM)
    checkpoint_epochs: int = setting(1, "epochs between two checkpoints; the end has one too", whole(1))
    tensorboard: bool = setting(False, "write metrics for TensorBoard, too", Kind("True or False", _check_tensorboard))
    init_from: str = setting("", "trained model to start from: a workdir, a file of weights, or 'standard'", _START)
    frozen: str = setting("", "weights of this model that stay: all but the last layer", choice("", "backbone"))
    mix_in: MixInSettings = group(MixInSettings)


@dataclasses.dataclass(frozen=True)
class EvalSettings(Section):
    """`eval`: the images that trained models are tested on."""

    seed: int = setting(0, "seed of the corrupted test sets, the same for every model", _SEED)
    corruptions: tuple[str, ...] = setting(("imagenet_c", "imagenet_noc"), "corruptions, benchmarks", _SOME_CORRUPTIONS)
    severity: str = setting("random", "random, levels, or numbers: 1,3,5 (levels) or 0,0.5,1 (fractions)", _SEVERITY)
    stored: str = setting("", "stored corrupted dataset in place of eval.corruptions (eval.py)", _STORED)
    verify: bool = setting(False, "compare all files of a stored dataset with their sha256", SWITCH)
    images: str = setting("", "list of the test images to show, of data.listed; '' is all (eval.py)", _PATH)
    natural: str = setting("", "naturally shifted test sets too: imagenet_r,objectnet (eval.py)", _NATURAL)
    natural_dir: str = setting("", "their folder; '' is the folder of tfds datasets", text("a folder, or ''"))
    batch_size: int = setting(500, "images at a time", _BATCH)
    reference: str = setting("", "reference of CE and mCE; '' is AlexNet where its published errors hold", _REFERENCE)
    reference_mismatch: str = setting("refuse", "a reference of other conditions", choice("refuse", "label"))
    enhance: str = setting("", "enhancement of every test image (eval.py)", _ENHANCEMENT)
    superclasses: str = setting(
        "", "score LAION-C's 16 classes by the mean or the sum of their members (eval.py)", choice("", "mean", "sum")
    )
    adapt: str = setting("", "test: BatchNorm statistics of each corrupted test set (eval.py)", choice("", "test"))
    pseudo_count: float = setting(0.0, "weight of the statistics from training, in test images (eval.adapt)", number(0))
    temperature: int = setting(0, "held-out training images for temperature scaling (eval.py, overlap.py)", whole())
    ensemble: bool = setting(False, "ensembles over the seeds of each training, too (eval.py, overlap.py)", SWITCH)


@dataclasses.dataclass(frozen=True)
class AdaptSettings(Section):
    """`adapt`: BatchNorm statistics of augmented training images (tools.adapt)."""

    scheme: str = setting("augmix", "augmentation of the training images; '' is only mirror and crop", _SCHEME)
    images: int = setting(10000, "number of training images", whole(2))
    batch_size: int = setting(500, "images at a time; their statistics normalise each layer", whole(2, 2**20))
    pseudo_count: float = setting(0.0, "weight of the statistics from training, in images; 0 replaces them", number(0))
    seed: int = setting(0, "seed of the choice of images and of their augmentation", _SEED)


def _finetune(key: str, default: Any) -> Any:
    """States a setting of `train` for fine-tuning: another default, the same meaning and range."""
    one = TrainSettings.settings()[key]
    return setting(default, one.meaning, Kind(one.expected, one.check))


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

    corruptions: tuple[str, ...] = setting((), "corruptions to train on, beside a standard model", _SOME_CORRUPTIONS)
    mixtures: tuple[str, ...] = setting((), "mixtures to train on too, for their coverage", _MIXTURES)
    schemes: tuple[str, ...] = setting(
        (), "schemes to train with: standard, augmix, augmix=* (512), NAME+jsd", _SCHEMES
    )
    enhancements: tuple[str, ...] = setting((), "enhancements to test; train=NAME: to train with, too", _ENHANCEMENTS)
    seeds: tuple[int, ...] = setting((0,), "seeds of the models of each training", several(_SEED, 1))
    parallel: int = setting(0, "models trained at once, on own devices; 0: one a device, on a CPU one", whole(0, 65536))
    threshold: float = setting(0.1, "largest overlap within the selected benchmark", _SHARE)
    finetune: FinetuneSettings = group(FinetuneSettings)


@dataclasses.dataclass(frozen=True)
class AdainSettings(Section):
    """`adain`: weights of style transfer (projects.structural.train_style_decoder)."""

    encoder: str = setting("", "file of the VGG-19, vgg_normalised.pth; '' draws random values", _PATH)
    decoder: str = setting("", "file of the first decoder, decoder.pth; '' draws random values", _PATH)
    widths: tuple[int, ...] = setting((64, 128, 256, 512), "channels of the four stages of both networks", _FOUR_WIDTHS)
    styles: str = setting("", "pictures of styles; '' draws textures", text("a folder of up to 10,000 images, or ''"))
    drawn: int = setting(100, "number of procedural textures", whole(1, 100_000))
    reading: str = setting("port", "formulas of the PyTorch port, or of the paper's code", choice("port", "original"))
    steps: int = setting(160_000, "training steps of the decoder; 0 keeps the first decoder", whole())
    batch_size: int = setting(8, "contents in a step, and as many styles", _BATCH)
    learning_rate: float = setting(1e-4, "learning rate of Adam at its first step", _POSITIVE)
    style_weight: float = setting(10.0, "weight of the style loss; `original`: .01 in code, .1 in decoder", number(0))


@dataclasses.dataclass(frozen=True)
class ToySettings(Section):
    """`msd.toy`: mixtures of two corruptions (tools.msd)."""

    first: str = setting("imagenet_c/motion_blur", "first of the two corruptions to mix", _CORRUPTION)
    second: str = setting("imagenet_c/impulse_noise", "second of the two corruptions to mix", _CORRUPTION)
    severity: str = setting("3", "severity of both, one number", _SEVERITY)
    fractions: tuple[float, ...] = setting((0.0, 0.5, 0.9, 0.99, 1.0), "shares of the first one", several(_SHARE, 1))
    out: str = setting("toy", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class SubsetsSettings(Section):
    """`msd.subsets`: closest, random and farthest transforms (tools.msd)."""

    scheme: str = setting("augmix", "scheme whose transforms are drawn", _SCHEME)
    pool: int = setting(4000, "number of transforms to order by closeness; the paper takes 100,000", whole(1))
    sizes: tuple[int, ...] = setting((10, 100, 1000), "sizes of the subsets, up to the pool", several(whole(1), 1))
    out: str = setting("subsets", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class ResamplingSettings(Section):
    """`msd.resampling`: spread of distances over images and draws (tools.msd)."""

    scheme: str = setting("augmix", "scheme of the transforms whose distance is measured", _SCHEME)
    pairs: int = setting(20, "pairs of a transform and a corruption; the paper takes 100", whole(1))
    resamplings: int = setting(20, "resamplings of each pair, other images and draws; the paper: 100", whole(2))
    images: tuple[int, ...] = setting((10, 20, 50, 100), "numbers of images", _SOME_RISING)
    draws: tuple[int, ...] = setting((10, 20, 50, 100), "numbers of draws", _SOME_RISING)
    out: str = setting("resampling", "folder of results in the workdir", _FOLDER)


@dataclasses.dataclass(frozen=True)
class MsdSettings(Section):
    """`msd`: distances of augmentation schemes to corruptions (tools.msd)."""

    model: str = setting("standard", "training of the model that gives the features", text("a model's name"))
    model_seed: int = setting(0, "seed of this model", _SEED)
    seed: int = setting(0, "seed of the choice of images and of all draws", _SEED)
    images: int = setting(100, "training images, without mirroring or cropping", whole(1))
    schemes: tuple[str, ...] = setting(
        _FOUR_SCHEMES, "standard, schemes, augmix=* (512), corruptions, benchmarks", _NAMES
    )
    transforms: int = setting(1000, "transforms drawn for each scheme; the paper's figures take 100,000", whole(1))
    corruptions: tuple[str, ...] = setting(("imagenet_c",), "corruptions to measure distances to", _CORRUPTIONS)
    severity: str = setting("levels", "severities, as eval.severity", _SEVERITY)
    draws: int = setting(100, "draws of each corruption and severity, averaged to its centre", whole(1))
    halves: int = setting(20, "random halves of images, transforms, draws; 0 gives no spread", whole(0, 100_000, but=1))
    chunk: int = setting(0, "transforms at a time, for speed and memory only; 0 fits the device", whole())
    errors: str = setting("", "evaluated workdirs of the schemes, for correlations", text("a pattern of paths, or ''"))
    out: str = setting("msd", "folder of results in the workdir", _FOLDER)
    toy: ToySettings = group(ToySettings)
    subsets: SubsetsSettings = group(SubsetsSettings)
    resampling: ResamplingSettings = group(ResamplingSettings)


@dataclasses.dataclass(frozen=True)
class SearchSettings(Section):
    """`search`: C-bar's search for a benchmark (tools.cbar)."""

    seeds: tuple[int, ...] = setting((), "seeds of the features' networks, as many as study.seeds", several(_SEED))
    images: int = setting(100, "training images behind the features, without mirroring or cropping", whole(1))
    draws: int = setting(100, "draws of each corruption and level, on all images; 0: a draw for each image", whole())
    target: float = setting(0.0, "mean error in percent to aim at; 0: their error on ImageNet-C", number(0, 100))
    seed: int = setting(0, "seed of the images, the draws and the random benchmarks; each run adds its number", _SEED)


@dataclasses.dataclass(frozen=True)
class CalibrateSettings(Section):
    """`calibrate`: severity ranges (tools.calibrate)."""

    corruptions: tuple[str, ...] = setting(("noc_candidates",), "corruptions to calibrate", _CORRUPTIONS)
    targets: tuple[float, ...] = setting((0.95, 0.5), "R of the standard model at both ends of a range", _TARGETS)
    images: int = setting(5000, "test images that R is measured on, balanced over classes; 0 is all", whole())
    seed: int = setting(0, "seed of the draws", _SEED)


@dataclasses.dataclass(frozen=True)
class Settings(Section):
    """All settings of a command."""

    seed: int = setting(0, "seed of initial parameters, order, mirroring and all draws of training", _SEED)
    ranges: str = setting("", "calibrated severity ranges of tools.calibrate; '' are the benchmarks' own", _PATH)
    frost: str = setting("", "photographs for imagenet_c/frost; '' draws textures", text("a folder of images, or ''"))
    bank: str = setting("", "images of laion_c/mosaic and stickers", text("a folder of images, or ''"))
    style: str = setting("", "weights of structural/style_transfer (projects.structural.train_style_decoder)", _PATH)
    imports: tuple[str, ...] = setting((), "modules to import, which register corruptions", several(text("a module")))
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
