"""Every mode of Pillow as RGB, by values worked out apart from it; any size in bounded memory and time."""

import io
import os
import pathlib
import resource
import struct
import sys
import time
import zlib

import jax
import numpy as np
import pytest
from PIL import Image

import corruptions
import data
from analysis import gallery
from corruptions import imagenet_c, laion_c, write
from corruptions.laion_c import banks
from corruptions.reading import pictures
from data import decode, tfds_source
from data.corrupted import readers
from tests.refusing import refuses

COLOURS = np.array([[0, 0, 0], [255, 255, 255], [10, 200, 30], [255, 1, 128]], np.uint8)


def grey(*levels):
    return np.array(levels)[:, None].repeat(3, 1)


def palette(mode, raw):
    image = Image.frombytes(mode, (len(raw) // len(mode), 1), bytes(raw))
    image.putpalette(COLOURS.tobytes())
    return image


def row(mode, raw):
    """One row of pixels from the bytes that Pillow keeps of them."""
    bands = len(Image.new(mode, (1, 1)).tobytes())
    return Image.frombytes(mode, (len(raw) // bands, 1), raw)


def integers(kind, *values):
    return np.array(values, kind).tobytes()


SIXTEEN = (0, 128, 129, 257, 32768, 65406, 65407, 65535)
LEVELS = grey(0, 0, 1, 1, 128, 254, 255, 255)  # v / 257, rounded
FLOATS = np.array([-3, 0, 0.4, 0.6, 127.5, 254.6, 300, np.nan, np.inf, -np.inf], np.float32)
CASES = {
    "1": (Image.frombytes("1", (2, 1), b"\x40"), grey(0, 255)),
    "L": (row("L", bytes([0, 7, 255])), grey(0, 7, 255)),
    "LA": (row("LA", bytes([9, 0, 200, 255])), grey(9, 200)),
    "La": (row("La", bytes([50, 100, 200, 255, 0, 0])), grey(127, 200, 0)),  # 255 x 50 / 100
    "P": (palette("P", [2, 0, 3]), COLOURS[[2, 0, 3]]),
    "PA": (palette("PA", [2, 0, 3, 255]), COLOURS[[2, 3]]),
    "RGB": (row("RGB", COLOURS.tobytes()), COLOURS),
    "RGBA": (row("RGBA", np.insert(COLOURS, 3, [0, 1, 2, 255], 1).tobytes()), COLOURS),
    "RGBa": (row("RGBa", bytes([50, 0, 100, 100, 7, 8, 9, 255])), np.array([[127, 0, 255], [7, 8, 9]])),
    "RGBX": (row("RGBX", np.insert(COLOURS, 3, 99, 1).tobytes()), COLOURS),
    "CMYK": (
        row("CMYK", bytes([0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255, 51, 102, 153, 51])),
        # 204 204 / 255 = 163.2, 153 204 / 255 = 122.4, 102 204 / 255 = 81.6
        np.array([[255, 255, 255], [0, 255, 255], [0, 0, 0], [163, 122, 82]]),
    ),
    "YCbCr": (
        row("YCbCr", bytes([100, 128, 128, 100, 128, 178, 100, 178, 128, 255, 128, 255])),
        # R = Y + 1.402 (Cr - 128), G = Y - .344136 (Cb - 128) - .714136 (Cr - 128), B = Y + 1.772 (Cb - 128)
        np.array([[100, 100, 100], [170, 64, 100], [100, 83, 189], [255, 164, 255]]),
    ),
    "HSV": (
        row("HSV", bytes([0, 0, 70, 0, 255, 255, 85, 255, 200, 170, 255, 100])),
        np.array([[70, 70, 70], [255, 0, 0], [0, 200, 0], [0, 0, 100]]),  # 85 and 170 are thirds of a turn
    ),
    "I;16": (row("I;16", integers("<u2", *SIXTEEN)), LEVELS),
    "I;16L": (row("I;16L", integers("<u2", *SIXTEEN)), LEVELS),
    "I;16B": (row("I;16B", integers(">u2", *SIXTEEN)), LEVELS),
    "I;16N": (row("I;16N", integers("=u2", *SIXTEEN)), LEVELS),
    "I": (
        row("I", integers("=i4", *SIXTEEN, -1, -(2**31), 65536, 2**31 - 1)),
        np.concatenate([LEVELS, grey(0, 0, 255, 255)]),
    ),
    "F": (row("F", FLOATS.tobytes()), grey(0, 0, 0, 1, 128, 255, 255, 0, 255, 0)),
}


@pytest.mark.parametrize("mode", CASES)
def test_every_mode_has_its_colours(mode):
    image, expected = CASES[mode]
    assert image.mode == mode
    found = np.asarray(pictures.rgb(image))
    assert found.dtype == np.uint8 and found.shape == (1, len(expected), 3)
    # Fixed-point tables of Pillow: a level.
    assert np.abs(found[0].astype(int) - expected).max() <= (1 if mode in ("YCbCr", "HSV", "CMYK") else 0), found


def lab_to_srgb(lab):
    """CIE L*a*b* under D50 to sRGB: the CIE's formula, Bradford's matrix to D65 with that of IEC 61966-2-1, its curve."""
    level, a, b = (lab * [100 / 255, 1, 1] - [0, 128, 128]).T
    f = np.stack([(level + 16) / 116 + a / 500, (level + 16) / 116, (level + 16) / 116 - b / 200])
    xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * np.array([[0.9642], [1], [0.8249]])
    matrix = [
        [3.1338561, -1.6168667, -0.4906146],
        [-0.9787684, 1.9161415, 0.033454],
        [0.0719453, -0.2289914, 1.4052427],
    ]
    linear = np.clip(matrix @ xyz, 0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055).T


def test_lab_is_that_of_the_formula():
    lab = np.array([[255, 128, 128], [0, 128, 128], [128, 128, 128], [137, 190, 170], [224, 100, 180], [90, 140, 90]])
    found = np.asarray(pictures.rgb(row("LAB", np.uint8(lab ^ [0, 128, 128]).tobytes())))[0]
    assert np.abs(found - lab_to_srgb(lab)).max() <= 6


def test_an_unknown_mode_is_refused_by_name():
    class Strange:
        mode = "BGR;24"

    refuses(lambda: pictures.rgb(Strange()), "among RGB, 1, L", "BGR;24")


def of_frost(folder):
    options = {"table": "imagenet", "photographs": imagenet_c.use_photographs(folder)}
    sample = corruptions.get("imagenet_c/frost").sample
    return np.asarray(sample(jax.random.key(0), (32, 32, 3), 1, **options)["texture"]).astype(np.uint8)


READERS = {
    "read_image of a path": corruptions.read_image,
    "read_image of bytes": lambda path: corruptions.read_image(path.read_bytes()),
    "read_image of Pillow's": lambda path: corruptions.read_image(Image.open(path)),
    "data.decode": lambda path: decode.read(path, 32, 32),
    "corrupted folders": readers.read_image,
    "corruptions.write": lambda path: write.from_folder(path.parents[1]).read(range(1))[0],
    "frost": lambda path: of_frost(path.parent),
    "tile images": lambda path: banks.find(laion_c.use_bank(path.parent, side=32)).images[0],
    "gallery": lambda path: gallery.photograph(path, 32),
    "tfds": lambda path: tfds_source._image(path.read_bytes()),
}
KINDS = {
    "16 bits": lambda level: Image.fromarray(np.full((32, 32), 257 * level, np.uint16)),
    "floats": lambda level: Image.fromarray(np.full((32, 32), level, np.float32)),
}


FILES = [("16 bits", "png"), ("16 bits", "tif"), ("floats", "tif")]
CALLS = [(reader, *file) for reader in READERS for file in FILES if reader != "tfds" or "png" in file]  # and JPEG


@pytest.mark.parametrize(("reader", "kind", "suffix"), CALLS)
def test_a_picture_of_16_bits_or_floats_is_neither_white_nor_black(tmp_path, reader, kind, suffix):
    path = tmp_path / "class" / f"x.{suffix}"
    path.parent.mkdir()
    KINDS[kind](116).save(path)
    found = READERS[reader](path)
    assert found.shape == (32, 32, 3) and found.dtype == np.uint8
    assert set(found.ravel().tolist()) == {116}


def test_a_grey_png_of_16_bits_has_its_levels(tmp_path):
    values = np.linspace(0, 65535, 32 * 32).reshape(32, 32).round().astype(np.uint16)
    Image.fromarray(values).save(tmp_path / "x.png")
    found = corruptions.read_image(tmp_path / "x.png")
    np.testing.assert_array_equal(found, np.rint(values / 257)[..., None].repeat(3, 2))


@pytest.mark.parametrize("mode", ["I;16", "F", "P", "CMYK"])
def test_corrupt_image_names_the_call_that_converts_and_it_works(mode):
    image = Image.fromarray(np.full((32, 32), 100, np.uint16)) if mode == "I;16" else Image.new(mode, (32, 32))
    refuses(lambda: corruptions.corrupt_image(image, "contrast", 1), "corruptions.read_image(image)")
    assert corruptions.corrupt_image(corruptions.read_image(image), "contrast", 1).shape == (32, 32, 3)


TURNED = np.zeros((32, 48, 3), np.uint8)
TURNED[:16, :16] = 200


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_an_orientation_is_counted_and_applied_on_request(tmp_path, suffix, caplog):
    exif = Image.Exif()
    exif[0x0112] = 6  # the first row is the right side
    (tmp_path / "in/class").mkdir(parents=True)
    options = {"lossless": True} if suffix == "webp" else {}
    Image.fromarray(TURNED).save(tmp_path / f"in/class/x.{suffix}", exif=exif, **options)
    Image.fromarray(TURNED).save(tmp_path / f"in/class/y.{suffix}", **options)
    stored, plain = (tmp_path / f"in/class/{name}.{suffix}" for name in "xy")
    expected = corruptions.read_image(plain)
    assert not caplog.records
    np.testing.assert_array_equal(corruptions.read_image(stored), expected)
    assert "1 files" in caplog.text and "turn=True" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(corruptions.read_image(stored, turn=True), np.rot90(expected, -1))
    assert not caplog.records
    write.write_dataset(tmp_path / "out", write.from_folder(tmp_path / "in"), corruptions="noc/hue", severities=[0])
    assert "1 files" in caplog.text and "turn=True" in caplog.text
    caplog.clear()
    loaded, turned = (
        data.load("image_folder", data_dir=tmp_path / "in", image_size=16, test_fraction=1.0, turn=turn)
        for turn in (False, True)
    )
    assert "1 files" in caplog.text
    assert (loaded.test.images[0] == loaded.test.images[1]).all()
    np.testing.assert_array_equal(
        turned.test.images[0, :, 0], decode.read(stored, 16, orientations=pictures.Orientations(True))[:, 0]
    )
    caplog.clear()
    data.load("image_folder", data_dir=tmp_path / "in", image_size=16, test_fraction=1.0)  # from the cache
    assert "1 files" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(gallery.photograph(stored, 32), gallery.photograph(plain, 32))
    assert "1 files" in caplog.text
    assert (gallery.photograph(stored, 32, turn=True) != gallery.photograph(plain, 32)).any()


def test_damaged_exif_data_leave_the_pixels(tmp_path):
    Image.fromarray(TURNED).save(tmp_path / "x.png", exif=b"Exif\0\0II*\0garbage")
    np.testing.assert_array_equal(corruptions.read_image(tmp_path / "x.png"), TURNED)


def png(width, height):
    """A black file of one bit a pixel, of some hundred bytes."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(bytes((1 + -(-width // 8)) * height), 9)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory in use")
@pytest.mark.parametrize("size", [(300_000, 1), (1, 300_000), (80_000_000, 1), (9_000, 9_000)])
def test_no_file_takes_more_memory_or_time_than_its_pixels(size):
    content = png(*size)
    in_use = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limits, started = resource.getrlimit(resource.RLIMIT_AS), time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + 350 * 10**6, limits[1]))
    try:
        found = [decode.read(io.BytesIO(content), 224, name="x")]
        found += [pictures.decode(content, "x", pictures.recipe(name, 224)) for name in ("imagenet", "resize")]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    for image in found:
        assert image.shape == (224, 224, 3) and not image.any()
    assert time.process_time() - started < 5


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "I;16"])
@pytest.mark.parametrize("size", [(700, 900), (641, 480), (40, 31), (2000, 20)])
def test_what_is_too_large_looks_as_if_resized_as_a_whole(monkeypatch, size, mode):
    coarse = np.random.default_rng(size[0]).integers(0, 256, (9, 11), np.uint8)
    image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image).astype(np.uint16) * 257)
    image = image.convert(mode) if mode != "I;16" else image
    expected = decode.square(image, 56).astype(int)
    monkeypatch.setattr(pictures, "LARGE", 0)
    monkeypatch.setattr(pictures, "_TILE", 100)  # many of them
    assert np.abs(decode.square(image, 56) - expected).max() <= 3


def test_a_large_jpeg_is_decoded_at_a_part_of_its_size_and_others_are_not(monkeypatch):
    coarse = np.random.default_rng(2).integers(0, 256, (9, 11, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(coarse).resize((1200, 900), Image.Resampling.BICUBIC).save(content, "JPEG", quality=95)
    decoded = []
    monkeypatch.setattr(pictures, "_reduced", lambda *given: decoded.append(given[0].size) or reduced(*given))
    whole = decode.read(content, 56).astype(int)  # 64 pixels of the shorter side: 112 x 128 would do
    assert not decoded
    monkeypatch.setattr(pictures, "LARGE", 1200 * 900 - 1)
    assert np.abs(decode.read(content, 56) - whole).max() <= 6
    assert decoded == [(300, 225)]


reduced = pictures._reduced
