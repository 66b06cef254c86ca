"""What a model is and what it sees: `seed`, `ranges`, `frost`, `style`, `imports`, `dataset`, `model`."""

from runtime.schema import choice, number, or_empty, several, switch, text, whole, word
from training.schema import named

SEED = 2**64 - 1  # the largest
_PATH = "a path, or ''"

SETTINGS = {
    "seed": whole("of initial parameters, order, mirroring and all draws of training", 0, SEED),
    "ranges": text("calibrated severity ranges, a file of tools.calibrate; '' are the benchmarks' own", _PATH),
    "frost": text(
        "photographs that imagenet_c/frost lays over images, such as ImageNet-C's five; '' draws procedural textures",
        "a folder of images, or ''",
    ),
    "style": text(
        "weights of structural/style_transfer, a file of tools.train_style_decoder; '' leaves that corruption unknown",
        _PATH,
    ),
    "imports": several("modules imported first, such as one that registers your corruptions", text("", "a module")),
    "dataset.name": word("which images", "a dataset of data.names()", named.dataset),
    "dataset.data_dir": text("where prepared datasets are; '' is TFDS_DATA_DIR or ~/tensorflow_datasets", _PATH),
    "dataset.seed": whole("of the drawing of shapes, and of what is split at random", 0, 2**32 - 1),
    "dataset.image_size": whole("side of the images in pixels, for shapes, ImageNet and image folders", 8, 4096),
    "dataset.train_size": whole("side in pixels of training images kept larger for crops; 0 is image_size", 0, 4096),
    "dataset.resize": choice(
        "how images of any size become square: shorter side (256 for 224), then the centre; or both sides, unequally",
        "crop",
        "squash",
    ),
    "dataset.placement": choice(
        "of images: in device memory, streamed from the host, or as they fit", "auto", "device", "stream"
    ),
    "dataset.train_limit": whole("use only so many training images, balanced over classes; 0 is all"),
    "dataset.test_limit": whole("use only so many test images, balanced over classes; 0 is all"),
    "model.name": word("the network", "a model of models.names()", named.model),
    "model.dtype": choice(
        "of the computation; '' is bfloat16 on accelerators and float32 on a CPU", "", "float32", "bfloat16", "float16"
    ),
    "model.checkpoint": text(
        "torchvision's weights, .safetensors or .pth, for eval.py, tools.calibrate and tools.msd", _PATH
    ),
    "model.class_stride": whole("of imported weights: 10 keeps the logits of ImageNet-100's classes", 1, 1000),
    "model.stem": whole("channels of the first convolution, of some families", 1, 4096),
    "model.widths": several("channels of the stages, of some families", whole("", 1, 65536), 1, order="any"),
    "model.scale": number("of the logits of fast_cifar", 0, above=True),
    "model.dropout": number("share of activations that training drops, of some families", 0, 1, below=True),
    "model.mean": or_empty(
        several("of the channels of the images, in [0, 1], for normalisation", number("", 0, 1), 3, 3, order="any"),
        (),
        "the network's",
    ),
    "model.std": or_empty(
        several("of the channels of the images, for normalisation", number("", 0, 1, above=True), 3, 3, order="any"),
        (),
        "the network's",
    ),
    "model.init": or_empty(
        choice("rule of the initial parameters", "he", "xavier", "goyal"), "", "`he`, usual for the family"
    ),
    "model.conv": choice("how convolutions are computed", "auto", "cpu", "xla"),
    "model.memory_efficient": switch("recompute activations of DenseNets instead of keeping them"),
    "model.exits": whole("answers of an MSDNet, each deeper than the one before", 1, 100),
    "model.step": whole("layers between two exits of an MSDNet", 1, 100),
    "model.base": whole("layers before the first exit of an MSDNet", 1, 100),
}
