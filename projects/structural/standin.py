"""Draws stand-ins for ICONS-50, CIFAR-100, ImageNet-22K and CIFAR-10-P, so that the protocols run without them.

    python -m projects.structural.standin --dataset=icons50 --out=DIR [--renditions=1] [--array]
    python -m projects.structural.standin --dataset=cifar100 --out=DIR [--train=20] [--test=10]
    python -m projects.structural.standin --dataset=imagenet22k_superclasses --out=DIR [--train=20] [--test=10]
    python -m projects.structural.standin --dataset=sequences --out=DIR [--number=20]

icons50      icons of the 50 classes in the 13 styles. A class is an outline with some number and depth of lobes; a style
             is a set of colours, a texture and the width of a border; a subtype turns the outline, a rendition moves
             it. Each class has the subtypes that are held out and two others. The folder release, or with --array the
             .npy file
cifar100     --train and --test images of each subclass, drawn as icons: the superclass is the outline, the subclass
             has its own colours and texture. As tfds stores them, in DIR/cifar100
imagenet22k_superclasses    such images of 30 synsets of 5 superclasses, 20 seen and 10 unseen
sequences    frames of the embedded dataset's images, 31 in each sequence: gaussian_noise.npy (standard deviation .02,
             anew in each frame but the first, which is clean), brightness.npy (.015 more from frame to frame, none in
             the middle) and translate.npy (a pixel more from frame to frame, wrapped around)
"""

from runtime import command  # isort: skip

import io
import itertools
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import data
from projects.structural import icons50
from projects.structural.superclasses import LISTS, SUBCLASSES, SUPERCLASSES
from runtime import files

# fmt: off
STYLES = (
    "apple", "google", "facebook", "emoji-one", "samsung", "microsoft", "lg", "htc", "whatsapp", "messenger", "twitter",
    "emojidex", "mozilla",
)
# fmt: on


def draw(label: int, style: str, rendition: int, subtype: str) -> np.ndarray:
    """Draws an icon: uint8 [32, 32, 3]; the same for the same arguments."""
    lobes, depth = 2 + label % 10, 0.1 + 0.08 * (label // 10)
    look = np.random.default_rng(zlib.crc32(style.encode()))
    place = np.random.default_rng([label, rendition, zlib.crc32(f"{style} {subtype}".encode())])
    turn = np.random.default_rng(zlib.crc32(subtype.encode())).uniform(0, 2 * np.pi)
    y, x = (np.mgrid[: icons50.SIDE, : icons50.SIDE] - 15.5 - place.uniform(-2, 2, (2, 1, 1))) / place.uniform(10, 13)
    edge = 1 + depth * np.cos(lobes * (np.arctan2(y, x) + turn))
    inside = edge - np.hypot(y, x)  # distance to the outline, in radii
    paper, ink, border = look.uniform(0.8, 1, 3), look.uniform(0, 0.9, 3), look.uniform(0, 0.3, 3)
    waves = np.sin(look.uniform(2, 12) * x + look.uniform(2, 12) * y) * look.uniform(0, 0.15)
    body = np.where((inside < look.uniform(0, 0.25))[..., None], border, ink + waves[..., None])
    icon = np.where((inside > 0)[..., None], body, paper)
    return np.round(255 * icon.clip(0, 1)).astype(np.uint8)


def draw_icons(renditions: int = 1) -> icons50.Icons:
    """Draws all icons: 50 classes, their subtypes, 13 styles, `renditions` of each."""
    rows = []
    for label, name in enumerate(icons50.CLASSES):
        subtypes = (*icons50.HELD_OUT.get(name, ()), f"{name}_plain", f"{name}_turned")
        rows += itertools.product([label], STYLES, map(str, range(renditions)), subtypes)
    rows.sort(key=lambda row: (row[0], f"{row[1]}_{row[2]}_{row[3]}.png"))  # the order of files
    labels, styles, numbers, subtypes = zip(*rows)
    images = np.stack([draw(label, style, int(rendition), subtype) for label, style, rendition, subtype in rows])
    return icons50.Icons(images, np.array(labels, np.int32), icons50.CLASSES, styles, numbers, subtypes)


def write_icons(folder: Path, drawn: icons50.Icons, array: bool = False) -> Path:
    """Writes icons as a release; returns the path for `icons50.read`."""
    folder.mkdir(parents=True, exist_ok=True)
    if array:
        path = folder / icons50.FILE
        texts = {"style": drawn.styles, "rendition": drawn.renditions, "subtype": drawn.subtypes}
        content = {"class": list(map(int, drawn.labels)), "image": drawn.images.transpose(0, 3, 1, 2)}
        content |= {name: list(column) for name, column in texts.items()}
        with files.writing(path) as file:
            np.save(file, np.array(content, dtype=object), allow_pickle=True)
        return path
    for image, path in zip(drawn.images, drawn.paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / path)
    return folder


_SEEN, _UNSEEN = 4, 2  # synsets of each of the five


def write_cifar100(folder: Path, train: int = 20, test: int = 10) -> None:
    """Draws `train` and `test` images of each of CIFAR-100's classes and writes them as tfds does."""
    import tensorflow_datasets as tfds  # takes a second

    coarse = {name: label for label, names in enumerate(SUPERCLASSES.values()) for name in names}

    def info(self):
        features = {
            "coarse_label": tfds.features.ClassLabel(names=list(SUPERCLASSES)),
            "image": tfds.features.Image(shape=(32, 32, 3)),
            "label": tfds.features.ClassLabel(names=list(SUBCLASSES)),
        }
        features, description = tfds.features.FeaturesDict(features), "A generated stand-in for CIFAR-100."
        return tfds.core.DatasetInfo(builder=self, description=description, features=features)

    def examples(renditions):
        for number in renditions:
            for name in SUBCLASSES:
                encoded = io.BytesIO()  # encoded bytes: tfds would need TensorFlow to encode an array
                Image.fromarray(draw(coarse[name], name, number, name)).save(encoded, "PNG")
                encoded.seek(0)
                yield f"{name}_{number}", {"coarse_label": coarse[name], "image": encoded, "label": name}

    def splits(self, _):
        return {"train": examples(range(train)), "test": examples(range(train, train + test))}

    body = {"VERSION": tfds.core.Version("3.0.2"), "name": "cifar100", "pkg_dir_path": Path(__file__).parent}
    body |= {"_info": info, "_split_generators": splits, "_generate_examples": examples}
    builder = type("Cifar100", (tfds.core.GeneratorBasedBuilder,), body, skip_registration=True)
    builder(data_dir=str(folder), file_format="array_record").download_and_prepare()


def write_synsets(folder: Path, train: int = 20, test: int = 10) -> None:
    """Writes lists of synsets, and `train` and `test` images of each, as `synsets` reads them."""
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


FRAMES = 31


def draw_sequences(images: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Makes {perturbation: uint8 [N, 31, H, W, 3]} of uint8 images [N, H, W, 3]."""
    clean = np.repeat(images[:, None], FRAMES, axis=1).astype(np.float32)
    noise = np.random.default_rng(seed).normal(size=clean.shape).astype(np.float32)
    noise[:, 0] = 0
    steps = np.arange(FRAMES) - FRAMES // 2
    made = {"gaussian_noise": clean + 255 * 0.02 * noise}
    made["brightness"] = clean + 255 * 0.015 * steps[:, None, None, None].astype(np.float32)
    made["translate"] = np.stack([np.roll(clean[:, i], step, axis=2) for i, step in enumerate(steps)], axis=1)
    return {name: np.round(np.clip(values, 0, 255)).astype(np.uint8) for name, values in made.items()}


def write_sequences(folder: Path, made: dict[str, np.ndarray]) -> None:
    """Writes an array for each perturbation."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in made.items():
        files.write_array(folder / f"{name}.npy", array)


def main():
    parser = command.Arguments(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--dataset", choices=_WRITERS, required=True, help="the dataset to stand in for")
    parser.add_argument("--renditions", type=int, default=1, help="renditions of each icon")
    parser.add_argument("--array", action="store_true", help="icons as one .npy file instead of folders")
    parser.add_argument("--train", type=int, default=20, help="training images of each subclass")
    parser.add_argument("--test", type=int, default=10, help="test images of each subclass")
    parser.add_argument("--number", type=int, default=20, help="sequences of each perturbation")
    flags = parser.parse_args()
    _WRITERS[flags.dataset](flags)
    print(f"written to {flags.out}")


def _sequences(flags):
    images = data.load("shapes", train_limit=1, test_limit=flags.number).test.images
    write_sequences(flags.out, draw_sequences(np.asarray(images)))


_WRITERS = {
    "icons50": lambda flags: write_icons(flags.out, draw_icons(flags.renditions), flags.array),
    "cifar100": lambda flags: write_cifar100(flags.out, flags.train, flags.test),
    "imagenet22k_superclasses": lambda flags: write_synsets(flags.out, flags.train, flags.test),
    "sequences": _sequences,
}


if __name__ == "__main__":
    with command.errors():
        main()
