"""Drawn benchmarks: grids and mosaics of pictures, pictures fitted to a number of bytes, and samples of a study."""

import io

import numpy as np
import pytest
from PIL import Image

import corruptions
import data
from analysis import gallery


@pytest.mark.parametrize("name", ["imagenet_c/contrast", "noc/border"])
def test_a_row_gets_stronger_from_left_to_right(name):
    image = gallery.photograph("", 32)
    row = gallery.corrupted(name, image, corruptions.severities(name)).astype(int)
    change = np.abs(row - image).mean((1, 2, 3))
    assert len(row) == 5 and np.all(np.diff(change) > 0)


def test_grid_holds_the_clean_picture_and_every_cell():
    image = gallery.photograph("", 32)
    names = ["imagenet_c/contrast", "imagenet_c/saturate"]
    rows = [np.stack([np.full_like(image, 40 * k + 80 * i) for k in range(5)]) for i in range(2)]
    sheet = np.asarray(gallery.grid(names, range(1, 6), rows, image, 32, 10**6))
    # From the right: cells of 32 pixels, 2 apart; what remains to the left is for labels.
    left = sheet.shape[1] - 6 * 34
    assert left > 40 and sheet.shape[0] == 20 + 2 * 34
    for i in range(2):
        cells = [sheet[20 + 34 * i :][:32, left + 34 * j :][:, :32] for j in range(6)]
        np.testing.assert_array_equal(cells[0], image)
        assert all(np.all(cells[k + 1] == 40 * k + 80 * i) for k in range(5))


def test_mosaic_holds_the_clean_picture_and_one_of_each():
    image = gallery.photograph("", 32)
    names = [f"cbar/name_{k}" for k in range(8)]
    pictures = [np.full_like(image, 10 + 20 * k) for k in range(8)]
    sheet = np.asarray(gallery.mosaic(names, pictures, image, 32, 10**6))
    tall = sheet.shape[0] // 2  # nine pictures, eight in a line
    assert sheet.shape[1] == 8 * 34 and tall > 32 + 13
    np.testing.assert_array_equal(sheet[:32, :32], image)
    for k, picture in enumerate(pictures, 1):
        i, j = divmod(k, 8)
        np.testing.assert_array_equal(sheet[i * tall :, 34 * j :][:32, :32], picture)
        label = sheet[i * tall + 32 : (i + 1) * tall, 34 * j :][:, :32]
        assert (label < 128).any() and (label == 255).mean() > 0.5


def test_noise_gives_way_to_gradients():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    ramp = Image.fromarray(np.repeat(np.arange(64, dtype=np.uint8)[None, :, None] * 3, 64, 0).repeat(3, 2))
    cells = [gallery.variants(picture) for picture in (noise, ramp)]
    limit = cells[0][2][1] + cells[1][0][1]
    coarse, smooth = gallery.fitted(cells, limit)
    assert len(np.unique(coarse)) <= 64
    np.testing.assert_array_equal(smooth, ramp)
    assert len(gallery.png(coarse)) + len(gallery.png(smooth)) <= limit
    assert [len(np.unique(p)) for p in gallery.fitted(cells, 0)] == [16, 12]  # what cannot fit gets coarsest


def test_photographs_are_cropped_to_a_square(tmp_path):
    picture = np.zeros((40, 80, 3), np.uint8)
    picture[:, 20:60] = 200
    Image.fromarray(picture).save(tmp_path / "wide.png")
    assert np.all(gallery.photograph(tmp_path / "wide.png", 40) == 200)


def test_command_writes_a_png(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gallery.corruptions, "names", lambda benchmark: ("imagenet_c/contrast", "imagenet_c/pixelate"))
    out = tmp_path / "new" / "picture.png"
    for more in ([], ["--severity=2"]):
        gallery.main(["--benchmark=imagenet_c", f"--out={out}", "--size=32", "--cell=32", *more])
        assert Image.open(io.BytesIO(out.read_bytes())).format == "PNG"
        assert "2 corruptions of imagenet_c" in capsys.readouterr().out


@pytest.mark.parametrize(("benchmark", "heads"), [("robobev", [1, 2, 3]), ("imagenet_c", [1, 2, 3, 4, 5])])
def test_columns_are_headed_by_severities_of_the_benchmark(benchmark, heads, tmp_path, monkeypatch):
    """Its members have other levels each as severities 1, 2, 3."""
    asked, grid = [], gallery.grid
    monkeypatch.setattr(
        gallery, "corrupted", lambda name, image, levels, seed: asked.append(levels) or [image] * len(levels)
    )
    monkeypatch.setattr(
        gallery, "grid", lambda names, severities, *more: asked.append([*severities]) or grid(names, severities, *more)
    )
    gallery.main([f"--benchmark={benchmark}", f"--out={tmp_path}/picture.png", "--size=32", "--cell=32"])
    assert asked[0] == heads
    assert asked[1:] == [corruptions.severities(name, benchmark) for name in corruptions.names(benchmark)]


def test_samples_follow_the_range_of_the_study():
    image = gallery.test_image({"name": "shapes", "image_size": 32, "placement": "auto", "data_dir": ""})
    for name, options in (("noc/border", {}), ("imagenet_c/contrast", {"range": [1.5, 4.0]})):
        pictures = np.concatenate([image[None], gallery.corrupted_in_range(name, image, options)]).astype(int)
        change = np.abs(pictures - image).mean((1, 2, 3))
        assert len(pictures) == 6 and np.all(np.diff(change) > 0)
    published = gallery.corrupted_in_range("imagenet_c/contrast", image, {}).astype(int)
    assert published.std() != pictures[1:].std()
    np.testing.assert_allclose(pictures[5], published[3], atol=1)  # level 4 is the severe end of the range


def test_the_image_is_a_test_image_of_the_study():
    image = gallery.test_image({"name": "shapes", "seed": 3, "test_limit": 50})
    images = data.load("shapes", seed=3, test_limit=50, train_limit=1).test.images
    assert any(np.array_equal(image, other) for other in np.asarray(images))


def test_a_corruption_that_is_not_known_has_no_row():
    config = {"dataset": {"name": "shapes"}}
    both, _ = gallery.draw_samples(("noc/border", "x/unknown"), config)
    alone, _ = gallery.draw_samples(("noc/border",), config)
    np.testing.assert_array_equal(np.asarray(both), np.asarray(alone))


def test_files_of_the_study_are_read_and_those_that_are_gone_only_cost_their_rows(tmp_path, monkeypatch):
    read = []
    bank = gallery.FROM_FILES["bank"]._replace(read=read.append)
    monkeypatch.setitem(gallery.FROM_FILES, "bank", bank)
    config = {"dataset": {"name": "shapes"}, "bank": "tiles", "frost": str(tmp_path / "gone")}
    picture, _ = gallery.draw_samples(("noc/border",), config)
    assert read == ["tiles"] and picture.height > 0
