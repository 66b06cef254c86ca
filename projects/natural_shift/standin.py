"""A stand-in for CIFAR-10 and CIFAR-10.1, so that networks are shown a natural set without data.

    python -m projects.natural_shift.standin --out=DIR

Writes the embedded dataset's images under the names of CIFAR-10's classes to DIR/train and DIR/test, for
--config.dataset.name=image_folder, and others of its images, dimmed, to DIR/cifar10_1, in the files of CIFAR-10.1.
"""

from runtime import command  # isort: skip

from pathlib import Path

import numpy as np
from PIL import Image

import data
from data.natural import sets
from runtime import files


def write(folder: Path, train: int = 600, test: int = 200) -> None:
    """Writes `train` and `test` images, and `test` others as the natural set."""
    drawn = data.load("shapes", train_limit=train, test_limit=test)
    for name, split in (("train", drawn.train), ("test", drawn.test)):
        for label, image, index in zip(split.labels, np.asarray(split.images), split.index):
            path = folder / name / sets.CIFAR10[label] / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    shifted = data.load("shapes", seed=1, train_limit=1, test_limit=test).test
    natural = sets.get("cifar10_1")
    images = np.round(0.7 * np.asarray(shifted.images)).astype(np.uint8)
    for name, array in zip(natural.arrays, (images, np.asarray(shifted.labels))):
        files.write_array(folder / natural.folders[0] / name, array)


def main():
    parser = command.Arguments(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    given = parser.parse_args()
    write(given.out)
    print(f"written to {given.out}")


if __name__ == "__main__":
    with command.errors():
        main()
