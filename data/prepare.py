"""Prepares a dataset for fast reading: CIFAR-10 or CIFAR-100 by download, ImageNet or ImageNet-100 from your copy.

    pip install -e '.[prepare]'
    python -m data.prepare --dataset=cifar10 --data_dir=~/tensorflow_datasets

Downloads 170 MB once and writes them as array_record, in a minute or two. Only this needs TensorFlow.

    python -m data.prepare --dataset=imagenet100 --source=ROOT --data_dir=OUT [--workers=N]

ROOT holds {train,val}/WORDNET_ID/*.JPEG, or a tfds imagenet2012 in array_record format. Every image is decoded and
resized once, into memory-mapped uint8 arrays: ImageNet-100 takes 20 GB at 224 pixels, ImageNet 200 GB. By default the
shorter side becomes 256 pixels and the centre is kept; with --resize=squash both sides become 224, proportions not kept,
as in the papers on overlapping corruptions. The same command continues a run that was stopped; with --verify it compares
every file with its sha256 and makes damaged ones again. TensorFlow is not needed.
"""

import importlib.util
import sys
from pathlib import Path

from corruptions.core import running
from data import tfds_source
from data.decode import RESIZE
from data.imagenet.prepare import prepare_and_verify
from data.imagenet.store import CLASSES
from runtime import command, files
from runtime.log import open_closed_streams

_OF_IMAGENET = (  # flags
    *("source", "image_size", "train_size", "resize", "workers"),
    *("shard_images", "max_damaged", "test_fraction", "turn", "verify"),
)


def prepare(dataset: str, data_dir: str) -> Path:
    """Prepares `dataset` below `data_dir`, unless its folder exists; returns that folder.

    Raises ModuleNotFoundError without TensorFlow or TensorFlow Datasets; FileNotFoundError where the folder holds the
    dataset in another file format.
    """
    parent = Path(data_dir).expanduser()
    if any((parent / dataset).glob("*/dataset_info.json")):
        return tfds_source.find(dataset, parent)
    missing = [name for name in ("tensorflow", "tensorflow_datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"preparing {dataset} needs {' and '.join(missing)}, which is not installed (reading it later does not "
            "need TensorFlow). Install it with:\n  pip install -e '.[prepare]'"
        )
    import tensorflow_datasets as tfds

    builder = tfds.builder(dataset, data_dir=str(parent), file_format="array_record")
    builder.download_and_prepare()
    return tfds_source.find(dataset, parent)


def main(argv: list[str] | None = None) -> int:
    open_closed_streams()
    running.leave()
    parser = _parser()
    flags = parser.parse_args(argv)
    if flags.dataset in tfds_source.CIFAR:
        for name in _OF_IMAGENET:
            if (given := getattr(flags, name)) != parser.get_default(name):
                parser.error(f"expected --{name} with imagenet or imagenet100, found {given} with {flags.dataset}")
    try:
        flags.source = flags.source and files.local(flags.source, "--source")
        flags.data_dir = files.local(flags.data_dir, "--data_dir")
        if flags.dataset in tfds_source.CIFAR:
            folder = prepare(flags.dataset, flags.data_dir)
        else:
            options = vars(flags)
            name, source, data_dir = map(options.pop, ("dataset", "source", "data_dir"))
            folder = prepare_and_verify(name, source, data_dir, **options)
        _upload(Path(folder))
        print(files.shown(str(folder)))
    except (OSError, ModuleNotFoundError, ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("data.prepare: stopped; the same command continues", file=sys.stderr)
        return 130
    return 0


def _upload(folder):
    """Writes the objects of new files, where the folder is a copy of what lies in a bucket."""
    if copy := files.copy_of(folder):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not copy.has(path):
                copy.put(path)
        copy.settle()


def _parser() -> command.Arguments:
    parser = command.Arguments(prog="python -m data.prepare", description=__doc__.splitlines()[0])
    names = [*sorted(tfds_source.CIFAR), *CLASSES]
    parser.add_argument("--dataset", choices=names, required=True)
    parser.add_argument(
        "--data_dir",
        default=tfds_source.default_folder(),
        help="the folder, or gs://BUCKET/FOLDER, to write <dataset>/... in; default: TFDS_DATA_DIR, or ~/tensorflow_datasets",
    )
    group = parser.add_argument_group("ImageNet")
    group.add_argument("--source", help="root of the folder tree, or a tfds folder with imagenet2012")
    group.add_argument("--image_size", type=int, default=224, help="side of the images in pixels")
    group.add_argument("--train_size", type=int, help="side of training images that are cropped at random, e.g. 256")
    group.add_argument("--resize", choices=RESIZE, default="crop", help="shorter side and centre, or both sides")
    group.add_argument("--workers", type=int, help="processes; default: one per core")
    group.add_argument("--shard_images", type=int, default=1024, help="images in a file")
    group.add_argument("--max_damaged", type=float, default=0.01, help="fraction of unreadable images that is accepted")
    group.add_argument(
        "--test_fraction", type=float, default=0.1, help="fraction of test images, for a tree without train/ and val/"
    )
    group.add_argument(
        "--turn", action="store_true", help="turn images by the orientation in their EXIF data; default: as stored"
    )
    group.add_argument(
        "--verify", action="store_true", help="compare every file with its sha256; with --source also mend damaged ones"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
