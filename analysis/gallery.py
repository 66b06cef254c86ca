"""Draws a benchmark, a row for each corruption and a column for each severity; and sample images of a study.

    python -m analysis.gallery --benchmark=imagenet_c --out=docs/images/imagenet_c.png
    python -m analysis.gallery --benchmark=noc_candidates --out=docs/images/noc_candidates.png --image=PHOTOGRAPH
    python -m analysis.gallery --benchmark=cbar_candidates --severity=7 --cell=120 --out=docs/images/cbar_candidates.png

Columns are the severities of the benchmark (`corruptions.severities`). A row has one key: along it only the severity
changes. With --severity there is one picture for each corruption, with its name below. Without --image, scene.png is corrupted, a
drawn photograph: hills, a barn, a tree and a sign. Images are corrupted at --size and drawn smaller, at --cell.
"""

from runtime import command  # isort: skip

import contextlib
import functools
import io
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

import corruptions
import data
from corruptions.assets import FROM_FILES
from corruptions.core import program_cache
from runtime import files
from runtime.files import write_atomically
from runtime.log import bar

_GAP = 2
_HEADER = 20
_COLUMNS = 8  # columns of a mosaic
_FONT = 13
_SCENE = pathlib.Path(__file__).with_name("scene.png")
_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
_CANDIDATES = 100  # the most varied of this many test images is chosen
# A program that runs once is compiled in a fifth of the time, to pixels that may differ by a level.
_RUNS_ONCE: Mapping[str, Any] = program_cache.QUICK_TO_COMPILE | {"xla_backend_optimization_level": 0}
_CELL, _BYTES = 96, 400_000  # side of a picture on the page; approximate size of all pictures


def corrupted(name: str, image: np.ndarray, severities: Iterable[float], seed: int = 0) -> np.ndarray:
    """Corrupts an image uint8 [H, W, 3] at every severity, under one key: uint8 [severities, H, W, 3]."""
    key = jax.random.key(seed)
    return np.stack([np.asarray(corruptions.corrupt(key, image[None], name, severity))[0] for severity in severities])


def grid(
    names: Sequence[str],
    severities: Iterable[float],
    rows: Iterable[np.ndarray],
    image: np.ndarray,
    cell: int,
    limit: int,
) -> Image.Image:
    """Draws a row for each corruption and a column for each severity, the clean picture first; RGB on white.

    `names`, qualified, and `severities` are the labels of rows and columns; `rows` have uint8 [severities, H, W, 3] of
    each name, `image` is the clean picture. A cell is `cell` pixels high, and all together may take `limit` bytes.
    """
    labels, columns = [_label(name) for name in names], ["clean", *severities]
    left, width = 10 + round(max(_font().getlength(label) for label in labels)), _width(image, cell)
    sheet = Image.new("RGB", (left + len(columns) * (width + _GAP), _HEADER + len(names) * (cell + _GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    for j, column in enumerate(columns):
        text = column if j == 0 else f"{'severity ' if j == 1 else ''}{column:g}"
        draw.text((left + j * (width + _GAP) + width / 2, _HEADER / 2), text, "black", _font(), anchor="mm")
    pictures = (picture for row in rows for picture in (image, *row))
    for k, picture in enumerate(fitted([variants(_small(p, width, cell)) for p in pictures], limit)):
        i, j = divmod(k, len(columns))
        top = _HEADER + i * (cell + _GAP)
        sheet.paste(picture, (left + j * (width + _GAP), top))
        if j == 0:
            draw.text((left - 6, top + cell / 2), labels[i], "black", _font(), anchor="rm")
    return sheet


def mosaic(
    names: Sequence[str], pictures: Iterable[np.ndarray], image: np.ndarray, cell: int, limit: int
) -> Image.Image:
    """Draws one picture, uint8 [H, W, 3], for each corruption, the clean one first, names below, eight in a line.

    RGB on white. `names`, `image`, `cell` and `limit` are as for `grid`.
    """
    labels, width, tall = ["clean", *map(_label, names)], _width(image, cell), cell + 2 * (_FONT + 1) + _GAP
    sheet = Image.new("RGB", (_COLUMNS * (width + _GAP), -(-len(labels) // _COLUMNS) * tall), "white")
    draw = ImageDraw.Draw(sheet)
    cells = [variants(_small(picture, width, cell)) for picture in (image, *pictures)]
    for k, picture in enumerate(fitted(cells, limit)):
        i, j = divmod(k, _COLUMNS)
        sheet.paste(picture, (j * (width + _GAP), i * tall))
        lines = [labels[k]] if _font().getlength(labels[k]) <= width else labels[k].rsplit(" ", 1)
        for line, text in enumerate(lines):
            middle = j * (width + _GAP) + width / 2, i * tall + cell + (line + 0.6) * (_FONT + 1)
            draw.text(middle, text, "black", _font(), anchor="mm")
    return sheet


@functools.cache
def _font():
    return ImageFont.load_default(_FONT)


def _label(name):
    return name.split("/")[1].replace("_", " ")


def _width(image, cell):
    return round(cell * image.shape[1] / image.shape[0])


def _small(picture, width, height):
    """Makes a `PIL.Image`, reduced by averaging, which adds neither ringing nor blur."""
    return Image.fromarray(picture).resize((width, height), Image.BOX)


def png(image: Image.Image) -> bytes:
    """Encodes an image as PNG."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def variants(picture: Image.Image) -> list[tuple[Image.Image, int]]:
    """Coarsens a picture to 256, 128, 64, 32 and 16 levels: (picture, bytes as PNG) of each."""
    tables = [
        [round((level >> (8 - bits)) * 255 / (2**bits - 1)) for level in range(256)] * 3 for bits in range(8, 3, -1)
    ]
    return [(coarse, len(png(coarse))) for coarse in map(picture.point, tables)]


def fitted(cells: Sequence[Sequence[tuple[Image.Image, int]]], limit: int) -> list[Image.Image]:
    """Chooses one of the variants of every cell, such that all together take about `limit` bytes, or as few as they can.

    All cells get the same share of bytes: noise, which hides steps, keeps few levels, and gradients keep many.
    """

    def chosen(share):
        return [next((v for v in cell if v[1] <= share), cell[-1]) for cell in cells]

    shares = sorted({size for cell in cells for _, size in cell})
    fitting = [share for share in shares if sum(size for _, size in chosen(share)) <= limit]
    return [picture for picture, _ in chosen(fitting[-1] if fitting else 0)]


def photograph(path: str, size: int, turn: bool = False) -> np.ndarray:
    """Reads a picture and crops it to a square in its middle, uint8 [size, size, 3]; without a path scene.png.

    `turn` applies the orientation in EXIF data (`corruptions.read_image`).
    """
    image = Image.fromarray(corruptions.read_image(path or _SCENE, turn=turn))
    return np.asarray(ImageOps.fit(image, (size, size), Image.LANCZOS))


def draw_samples(
    names: Sequence[str], config: Mapping[str, Any], image: str = "", turn: bool = False
) -> tuple[Image.Image, str]:
    """Draws samples of a study, a row for each corruption that this version knows: (picture, caption).

    Reads `dataset`, `train.corruption_options` (ranges in use), and files such as `frost` from its config. `image` is a
    photograph in the place of a test image of the study, turned by its EXIF data with `turn`. Raises FileNotFoundError or ValueError where its images, or the photograph,
    are not there.
    """
    dataset = config.get("dataset", {})
    picture = photograph(image, dataset.get("image_size") or 224, turn) if image else test_image(dataset)
    for name, known in FROM_FILES.items():
        if path := config.get(name):
            with contextlib.suppress(OSError, ValueError):  # files that are gone: their corruptions are left out below
                known.use(files.local(path, f"config.{name}"), dataset.get("turn", False))
    options = config.get("train", {}).get("corruption_options", {})
    rows = {}
    for name in bar("corruption", names, desc="sample images", leave=False):
        try:
            rows[name] = corrupted_in_range(name, picture, options.get(name, {}))
        except ValueError:  # an unknown corruption, or one whose photographs or weights are missing
            continue
    if not rows:
        raise ValueError(f"none of the corruptions {', '.join(names)} can be drawn here")
    source = image or f"a test image of {dataset.get('name')}"
    caption = (
        f"{source}, {picture.shape[1]}\N{MULTIPLICATION SIGN}{picture.shape[0]} pixels, clean and at five severities from 0, "
        "the mildest, to 1, the most severe. Along a row only the severity changes."
    )
    return grid(list(rows), _FRACTIONS, rows.values(), picture, _CELL, _BYTES), caption


def test_image(dataset: Mapping[str, Any]) -> np.ndarray:
    """Reads the most varied of the first test images of a study, uint8 [H, W, 3], for settings as `config.dataset`."""
    settings = {name: value for name, value in dataset.items() if name != "placement" and value not in ("", 0)}
    images = data.load(**settings | {"train_limit": 1}).test.images
    first = np.asarray(images[: min(_CANDIDATES, len(images))])
    return first[first.std((1, 2, 3)).argmax()]


def corrupted_in_range(name: str, image: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """Corrupts an image at five severities under one key: uint8 [5, H, W, 3].

    With a range in `options` the severities are fractions of it; else five levels, evenly spaced, or fractions.
    """
    scale, severities = corruptions.get(name).scale, np.array(_FRACTIONS)
    if isinstance(scale, corruptions.Levels):
        if options.get("range"):
            mild, severe = options["range"]
            severities, options = mild + severities * (severe - mild), options | {"interpolate": True}
        else:
            severities = np.floor(1 + severities * (scale.count - 1) + 0.5).astype(np.int32)
    batch, index = np.repeat(image[None], len(severities), axis=0), jnp.zeros(len(severities), jnp.int32)  # equal draws

    def drawn(key, batch, severities):
        return corruptions.corrupt(key, batch, name, severities, index=index, **options)

    given = jax.random.key(0), batch, jnp.asarray(severities)
    if program_cache.compiles_with(None, *_RUNS_ONCE.items()):
        drawn = jax.jit(drawn, compiler_options=_RUNS_ONCE)
    return np.asarray(drawn(*given))


def main(argv=None):
    parser = command.Arguments(prog="python -m analysis.gallery", description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", default="imagenet_c", choices=corruptions.benchmarks())
    parser.add_argument("--out", required=True, help="PNG file to write")
    parser.add_argument("--severity", type=float, help="level or fraction: one picture for each corruption")
    parser.add_argument("--image", default="", help="photograph to corrupt; by default scene.png, a drawn scene")
    parser.add_argument("--turn", action="store_true", help="turn --image by the orientation in its EXIF data")
    parser.add_argument("--bank", default="", help="folder of images for laion_c; by default drawn shapes")
    parser.add_argument("--size", type=int, default=224, help="side of the corrupted image")
    parser.add_argument("--cell", type=int, default=96, help="side of a picture in the table")
    parser.add_argument("--kilobytes", type=int, default=650, help="size of the file at most, or nearly")
    parser.add_argument("--seed", type=int, default=3)
    flags = parser.parse_args(argv)
    image = photograph(flags.image, flags.size, flags.turn)
    names = corruptions.names(flags.benchmark)
    if any("bank" in corruptions.get(name).options for name in names):
        corruptions.laion_c.use_bank(flags.bank or data.load("shapes").train.images)
    if flags.severity is None:
        severities = corruptions.severities(names[0], flags.benchmark)
        if corruptions.selected_levels(names[0], flags.benchmark):
            severities = range(1, len(severities) + 1)  # each member has its own levels as severities 1, 2, ...
        rows = (corrupted(name, image, corruptions.severities(name, flags.benchmark), flags.seed) for name in names)
        sheet = grid(names, severities, rows, image, flags.cell, 1000 * flags.kilobytes)
    else:
        pictures = (corrupted(name, image, [flags.severity], flags.seed)[0] for name in names)
        sheet = mosaic(names, pictures, image, flags.cell, 1000 * flags.kilobytes)
    content = png(sheet)
    write_atomically(flags.out, content)
    print(f"{flags.out}: {len(names)} corruptions of {flags.benchmark}, {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    with command.errors():
        main()
