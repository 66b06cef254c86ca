"""A procedural stand-in for ICONS-50, so that its protocols run without it.

    python -m data.icons50.standin --out=DIR [--renditions=1] [--array]

Draws icons of the 50 classes in the 13 styles, from a seed: a class is an outline of so many lobes
of some depth, a style is colours, a texture and the width of a border, a subtype turns the outline
and a rendition moves it. Each class has the subtypes that are held out and two others. Written in
the layout of the folder, or with --array of the .npy file.
"""

import argparse
import itertools
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from data.icons50 import protocols, release
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
    y, x = (np.mgrid[: release.SIDE, : release.SIDE] - 15.5 - place.uniform(-2, 2, (2, 1, 1))) / place.uniform(10, 13)
    edge = 1 + depth * np.cos(lobes * (np.arctan2(y, x) + turn))
    inside = edge - np.hypot(y, x)  # distance to the outline, in radii
    paper, ink, border = look.uniform(0.8, 1, 3), look.uniform(0, 0.9, 3), look.uniform(0, 0.3, 3)
    waves = np.sin(look.uniform(2, 12) * x + look.uniform(2, 12) * y) * look.uniform(0, 0.15)
    body = np.where((inside < look.uniform(0, 0.25))[..., None], border, ink + waves[..., None])
    icon = np.where((inside > 0)[..., None], body, paper)
    return np.round(255 * icon.clip(0, 1)).astype(np.uint8)


def icons(renditions: int = 1) -> release.Icons:
    """Draws all icons: 50 classes, their subtypes, 13 styles, so many renditions."""
    rows = []
    for label, name in enumerate(release.CLASSES):
        subtypes = (*protocols.HELD_OUT.get(name, ()), f"{name}_plain", f"{name}_turned")
        rows += [
            (label, style, str(rendition), subtype)
            for style, subtype, rendition in itertools.product(STYLES, subtypes, range(renditions))
        ]
    rows.sort(key=lambda row: (row[0], f"{row[1]}_{row[2]}_{row[3]}.png"))  # the order of files
    labels, styles, numbers, subtypes = zip(*rows)
    images = np.stack([draw(label, style, int(rendition), subtype) for label, style, rendition, subtype in rows])
    return release.Icons(images, np.array(labels, np.int32), release.CLASSES, styles, numbers, subtypes)


def write(folder: Path, drawn: release.Icons, array: bool = False) -> Path:
    """Writes icons as a release; returns what `release.read` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    if array:
        path = folder / release.FILE
        content = {
            "class": list(map(int, drawn.labels)),
            "style": list(drawn.styles),
            "image": drawn.images.transpose(0, 3, 1, 2),
            "rendition": list(drawn.renditions),
            "subtype": list(drawn.subtypes),
        }
        with files.writing(path) as file:
            np.save(file, np.array(content, dtype=object), allow_pickle=True)
        return path
    for image, path in zip(drawn.images, drawn.paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / path)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the icons")
    parser.add_argument("--renditions", type=int, default=1, help="of each icon")
    parser.add_argument("--array", action="store_true", help="the .npy file in place of the folders")
    given = parser.parse_args()
    print(f"written to {write(given.out, icons(given.renditions), given.array)}")


if __name__ == "__main__":
    main()
