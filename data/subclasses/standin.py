"""A generated stand-in for CIFAR-100, so that the protocol of subclasses runs without it.

    python -m data.subclasses.standin --out=DIR [--train=20] [--test=10]

Draws so many images of each of the 100 classes with the icons of `data.icons50.standin`: the
superclass is the outline, the subclass has colours and a texture of its own. They are written as
tfds stores CIFAR-100, in DIR/cifar100.
"""

import argparse
import io
from pathlib import Path

from PIL import Image

from data.icons50.standin import draw
from data.subclasses.cifar100 import SUBCLASSES, SUPERCLASSES


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the stand-in")
    parser.add_argument("--train", type=int, default=20, help="images of each class to train on")
    parser.add_argument("--test", type=int, default=10, help="images of each class to test on")
    given = parser.parse_args()
    write(given.out, given.train, given.test)
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
