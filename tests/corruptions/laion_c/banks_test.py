"""Banks of tiles: what is read, how it is named and refused, and what mosaic and stickers make of it."""

import jax
import numpy as np
import PIL.Image
import pytest

import corruptions
from corruptions import laion_c
from corruptions.laion_c import banks
from runtime.artifacts import provenance
from tests.pages import example_of
from tests.reference.laion_c import blocks
from tests.reference.photographs import photograph, photographs

KEY = jax.random.key(5)


def corrupted(image, name, severity, **options):
    return np.asarray(corruptions.corrupt(KEY, image[None], f"laion_c/{name}", severity, **options))[0]


def of_one_color(colors):
    return np.broadcast_to(np.asarray(colors, np.uint8)[:, None, None], (len(colors), 8, 8, 3))


def test_a_constant_image_is_one_tile_repeated():
    for severity, side in zip(range(1, 6), (4, 6, 8, 16, 28), strict=True):
        found = corrupted(np.full((224, 224, 3), 90, np.uint8), "mosaic", severity)
        left = 2 if side == 6 else 0  # 38 tiles of 6 pixels reach 2 pixels over both borders
        tile = found[side - left : 2 * side - left, side - left : 2 * side - left]
        np.testing.assert_array_equal(found, np.tile(tile, (57, 57, 1))[left : left + 224, left : left + 224])


def test_a_bank_of_greys_makes_pixels_of_pillow():
    bank = laion_c.use_bank(of_one_color(np.arange(256)[:, None].repeat(3, 1)))
    image = np.broadcast_to(photograph(48, 48)[..., :1], (48, 48, 3))
    for severity, side in ((1, 3), (2, 4), (3, 6), (5, 16)):
        expected = (
            PIL.Image.fromarray(image).resize((48 // side,) * 2, PIL.Image.BICUBIC).resize((48, 48), PIL.Image.NEAREST)
        )
        np.testing.assert_array_equal(corrupted(image, "mosaic", severity, bank=bank), expected)


def test_colours_are_off_by_the_distance_to_the_nearest_of_many():
    """About .55 N^(-1/3) of the range for N uniform colours."""
    rng, number = np.random.default_rng(0), 4096
    bank = laion_c.use_bank(of_one_color(rng.integers(0, 256, (number, 3))))
    cells = rng.integers(0, 256, (16, 16, 3), np.uint8)
    image = cells.repeat(2, 0).repeat(2, 1)  # 2 pixels are a cell of severity 1 at 32
    found = corrupted(image, "mosaic", 1, bank=bank)[::2, ::2].astype(float)
    error = np.sqrt(((found - blocks.reduced(image, 2)) ** 2).sum(-1)) / 255
    assert abs(error.mean() * number ** (1 / 3) / 0.55 - 1) < 0.15


def test_severity_2_is_the_middle_of_the_released_mosaic():
    """The release makes 42 x 42 tiles of an image of 252 and shows its middle 224; borders see what lies beyond them."""
    large, tiles = photograph(252, 252, 3), photographs(48, 32, 32)
    bank = laion_c.use_bank(tiles)
    cells = np.asarray(PIL.Image.fromarray(large).resize((42, 42), PIL.Image.BICUBIC)).reshape(-1, 3)
    tiles = np.stack([blocks.tile_of(tile, 6) for tile in tiles])
    distance = ((cells[:, None] - tiles.mean((1, 2), dtype=np.float64)[None]) ** 2).sum(-1)
    whole = tiles[distance.argmin(1)].reshape(42, 42, 6, 6, 3).swapaxes(1, 2).reshape(252, 252, 3)
    found = corrupted(large[14:-14, 14:-14], "mosaic", 2, bank=bank)
    assert (found[16:-16, 16:-16] != whole[30:-30, 30:-30]).mean() < 1e-3


def test_a_choice_among_pictures_of_a_bank_is_asked_for_by_its_members(own_registry, tmp_path):
    laion_c.use_bank(of_one_color(np.arange(6).reshape(2, 3)))
    corruptions.register(corruptions.random_choice(["laion_c/mosaic", "noc/hue"], name="mine/either"))
    images, labels = photographs(2, 32, 32), np.array([0, 1])
    for call in (
        lambda: corruptions.evaluate(lambda x: x[:, 0, 0], images, labels, corruptions="mine/either"),
        lambda: corruptions.write_dataset(tmp_path, (images, labels), corruptions="mine/either"),
    ):
        with pytest.raises(ValueError, match="found mine/either, made of laion_c/mosaic: ask for its members"):
            call()


@pytest.mark.parametrize("side", [pytest.param(224, marks=pytest.mark.slow), 64])
def test_stickers_cover_the_published_share(side):
    """39.2, 61.7, 82.5, 90.1, 95.7 % of the image, by the facts of LAION-C; never its last row and column."""
    bank = laion_c.use_bank(np.full((3, 32, 32, 3), 255, np.uint8))
    black = np.zeros((40, side, side, 3), np.uint8)
    for severity, share in enumerate((0.392, 0.617, 0.825, 0.901, 0.957), 1):
        found = np.asarray(corruptions.corrupt(KEY, black, "laion_c/stickers", severity, bank=bank))[..., 0] > 0
        assert not found[:, -1].any() and not found[:, :, -1].any()
        assert abs(found.mean() - share) < (0.012 if side == 224 else 0.06), severity
        if side == 224:
            inside = found[:, 16:-16, 16:-16].mean()
            assert abs(inside - (1 - (1 - 256 / 43264) ** (100, 200, 400, 600, 1200)[severity - 1])) < 0.012


def test_an_array_gives_its_middle_squares():
    images = photographs(5, 40, 64)
    bank = banks.find(laion_c.use_bank(images, side=20, limit=3))
    assert bank.images.shape == (3, 20, 20, 3) and bank.reduced
    for found, k in zip(bank.images, (0, 1, 3), strict=True):
        np.testing.assert_array_equal(found, blocks.tile_of(images[k, :, 12:52], 20))
    np.testing.assert_array_equal(bank.tiles(7)[1], blocks.tile_of(bank.images[1], 7))


def test_a_folder_is_read_as_the_release_reads_images(tmp_path):
    pictures = {"a/1.png": photograph(300, 400, 1), "b/2.png": photograph(350, 260, 2), "c.png": photograph(40, 30, 3)}
    for name, picture in pictures.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(picture).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    bank = banks.find(laion_c.use_bank(tmp_path, side=224))
    for found, picture in zip(bank.images, pictures.values(), strict=True):
        height, width, _ = picture.shape
        size = (256 * width // min(height, width), 256 * height // min(height, width))
        whole = np.asarray(PIL.Image.fromarray(picture).resize(size, PIL.Image.BILINEAR))
        top, left = (round((n - 224) / 2) for n in whole.shape[:2])
        np.testing.assert_array_equal(found, whole[top : top + 224, left : left + 224])
    np.testing.assert_array_equal(bank.tiles(28)[0], blocks.tile_of(bank.images[0], 28))
    assert banks.find(laion_c.use_bank(tmp_path)).images.shape == (3, 64, 64, 3)


def test_the_last_bank_is_the_default_and_results_name_it():
    image, choice = photograph(32, 32), corruptions.random_choice(("laion_c/mosaic",))
    for grey in (40, 200):
        digest = laion_c.use_bank(np.full((2, 8, 8, 3), grey, np.uint8))
        assert (corrupted(image, "mosaic", 3) == grey).all()
        chosen = corruptions.corrupt(KEY, image[None], choice, 3)
        assert (np.asarray(chosen) == grey).all()
        for name in ("mosaic", "stickers"):
            assert corruptions.get(f"laion_c/{name}").describe((32, 32, 3))["bank"] == digest
        assert provenance()["banks"][-1] == digest == laion_c.used_banks()[-1]
    first = laion_c.used_banks()[-2]
    assert (corrupted(image, "mosaic", 3, bank=first) == 40).all()


def test_the_example_of_the_how_to_runs():
    given = {"corruptions": corruptions, "key": KEY, "images": photographs(4, 32, 32), "logits": np.eye(1000)[:4]}
    exec(example_of("docs/howto/corrupt.md", "Take the corruptions of LAION-C"), given)
    assert given["tiled"].shape == (4, 32, 32, 3) and given["scores"].shape == (4, 16)
    assert given["labels"].tolist() == [0, 1, -1] and given["bank"] == laion_c.used_banks()[-1]


def test_without_a_bank_the_message_says_how_to_make_one(monkeypatch):
    monkeypatch.setattr(banks, "_USED", {})
    for name in ("mosaic", "stickers"):
        with pytest.raises(ValueError, match=r"found none; read one: corruptions.laion_c.use_bank\(FOLDER\)") as caught:
            corrupted(photograph(32, 32), name, 1)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((np.zeros((0, 8, 8, 3), np.uint8),), r"one or more, or a folder, found uint8 \(0, 8, 8, 3\)"),
        ((np.zeros((8, 8, 3), np.uint8),), r"uint8 \[N, H, W, 3\], .* found uint8 \(8, 8, 3\)"),
        ((np.zeros((2, 8, 8, 1), np.uint8),), r"found uint8 \(2, 8, 8, 1\)"),
        ((np.zeros((2, 8, 8, 3), np.float32),), r"found float32 \(2, 8, 8, 3\)"),
        ((None,), "found NoneType"),
        (("nowhere",), "found no folder at 'nowhere'"),
        (("empty",), "found none"),
        (("damaged",), r"1\.png cannot be read"),
        ((np.zeros((2, 8, 8, 3), np.uint8), 0), "a side and a limit of at least 1, found side=0"),
    ],
)
def test_bad_banks_are_refused_in_one_line(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/1.png").write_bytes(b"no image")
    source, *side = given
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        laion_c.use_bank(source, **({"side": side[0]} if side else {}))
    assert "\n" not in str(caught.value)
