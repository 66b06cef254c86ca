"""Generated stand-ins for CIFAR-100 and for ImageNet-22K, so that the protocols of subclasses run
without them.

    python -m data.subclasses.standin --out=DIR [--dataset=cifar100] [--train=20] [--test=10]

Draws so many images of each subclass with the icons of `data.icons50.standin`: the superclass is the
outline, the subclass has colours and a texture of its own. CIFAR-100's 100 are written as tfds
stores them, in DIR/cifar100; with --dataset=imagenet22k_superclasses 30 synsets of 5 superclasses, 20
seen and 10 unseen, as `synsets` reads them.
"""

import argparse
import io
from pathlib import Path

from PIL import Image

from data.icons50.standin import draw
from data.subclasses.cifar100 import SUBCLASSES, SUPERCLASSES
from data.subclasses.synsets import LISTS
from runtime import files

_SEEN, _UNSEEN = 4, 2  # synsets of each of the five


def write(folder: Path, train: int = 20, test: int = 10) -> None:
    """Writes so many images of each class for training and for testing."""
    import tensorflow_datasets as tfds  # takes a second

    coarse = {name: label for label, names in enumerate(SUPERCLASSES.values()) for name in names}

    def info(self):
        features = {
            "coarse_label": tfds.features.ClassLabel(names=list(SUPERCLASSES)),
            "image": tfds.features.Image(shape=(32, 32, 3)),
            "label": tfds.features.ClassLabel(names=list(SUBCLASSES)),
        }
        description = "A generated stand-in for CIFAR-100."
        return tfds.core.DatasetInfo(
            builder=self, description=description, features=tfds.features.FeaturesDict(features)
        )

    def examples(renditions):
        for number in renditions:
            for name in SUBCLASSES:
                encoded = io.BytesIO()  # encoded bytes: tfds would need TensorFlow to encode an array
                Image.fromarray(draw(coarse[name], name, number, name)).save(encoded, "PNG")
                encoded.seek(0)
                yield f"{name}_{number}", {"coarse_label": coarse[name], "image": encoded, "label": name}

    body = {
        "VERSION": tfds.core.Version("3.0.2"),
        "name": "cifar100",
        "pkg_dir_path": Path(__file__).parent,
        "_info": info,
        "_split_generators": lambda self, _: {
            "train": examples(range(train)),
            "test": examples(range(train, train + test)),
        },
        "_generate_examples": examples,
    }
    builder = type("Cifar100", (tfds.core.GeneratorBasedBuilder,), body, skip_registration=True)
    builder(data_dir=str(folder), file_format="array_record").download_and_prepare()


def write_synsets(folder: Path, train: int = 20, test: int = 10) -> None:
    """Writes lists of synsets, and so many images of each for training and for testing."""
    lists = {}
    for label in range(5):
        synsets = [f"n9000{label}{number:03}" for number in range(_SEEN + _UNSEEN)]
        lists[f"outline {label}"] = {"seen": synsets[:_SEEN], "unseen": synsets[_SEEN:]}
        for synset in synsets:
            seen = synset in synsets[:_SEEN]
            for number in range(0 if seen else train, train + test):
                split = "train" if number < train else "val" if seen else "unseen"
                path = folder / split / synset / f"{synset}_{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(draw(label, synset, number, synset)).save(path)
    files.write_json(folder / LISTS, lists)


WRITERS = {"cifar100": write, "imagenet22k_superclasses": write_synsets}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the stand-in")
    parser.add_argument("--dataset", choices=WRITERS, default="cifar100", help="what it stands in for")
    parser.add_argument("--train", type=int, default=20, help="images of each subclass to train on")
    parser.add_argument("--test", type=int, default=10, help="images of each subclass to test on")
    given = parser.parse_args()
    WRITERS[given.dataset](given.out, given.train, given.test)
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
