"""Released C-bar datasets: their names and severities are those of this project."""

import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions.cbar import SELECTED, severities
from data.corrupted import open_corrupted
from data.corrupted.dataset import published_order, published_severities, qualified

# As the released archives call them.
CIFAR10_C_BAR = (
    *("blue_noise_sample", "checkerboard_cutout", "inverse_sparkles", "pinch_and_twirl", "ripple", "brownish_noise"),
    *("circular_motion_blur", "lines", "sparkles", "transverse_chromatic_abberation"),
)
IMAGENET_C_BAR = (
    *("blue_noise_sample", "brownish_noise", "caustic_refraction", "checkerboard_cutout", "cocentric_sine_waves"),
    *("inverse_sparkles", "perlin_noise", "plasma_noise", "single_frequency_greyscale", "sparkles"),
)


def test_every_corruption_has_its_name_in_all_its_spellings():
    for name in (
        *corruptions.names("imagenet_c"),
        *corruptions.names("imagenet_c_extra"),
        *corruptions.names("cbar_candidates"),
    ):
        for spelling in (corruptions.get(name).name, *corruptions.get(name).aliases):
            assert qualified(spelling) == name
    assert qualified("border") == "border"
    ten = corruptions.names("imagenet_c_bar")
    assert published_order(["zebra", *sorted(ten), "fog"]) == ["fog", *ten, "zebra"]


def test_strengths_are_those_of_the_benchmark():
    for name, levels in SELECTED["imagenet_c_bar"].items():
        strengths = [severities.scan(name, "imagenet")[k - 1] for k in levels]
        folders = [f"{strength:.2f}" for strength in strengths]
        assert published_severities(name, sorted(folders)) == {f: k for k, f in enumerate(folders, 1)}
    assert published_severities("sparkles", ["1.00", "2.00", "3.00", "4.00", "5.00"]) == {}
    assert published_severities("sparkles", ["1", "2", "3", "5", "6"]) == {}  # not as it prints them
    assert published_severities("snow", ["1.00", "2.00", "3.00", "5.00", "6.00"]) == {}


def test_released_cifar10_c_bar(tmp_path):
    labels = np.arange(4)
    for number, name in enumerate(CIFAR10_C_BAR):
        blocks = np.arange(5, dtype=np.uint8).repeat(4) + 10 * number
        np.save(
            tmp_path / f"{name}.npy", np.broadcast_to(blocks[:, None, None, None], (20, 32, 32, 3)).astype(np.uint8)
        )
    np.save(tmp_path / "labels.npy", np.tile(labels, 5))
    dataset = open_corrupted(tmp_path)
    names = corruptions.names("cifar10_c_bar")
    assert set(dataset.conditions()) == {(name, s) for name in names for s in range(1, 6)}
    for number, name in enumerate(CIFAR10_C_BAR):
        for k in range(1, 6):
            ((images, found),) = dataset.batches(corruptions.get(name).qualified_name, k, 4)
            assert (images == 10 * number + k - 1).all() and np.array_equal(found, labels)


@pytest.mark.parametrize("printed", [True, False])
def test_released_imagenet_c_bar(tmp_path, printed):
    """With strengths as the authors' program prints them, and with 1 to 5 as in their archive."""
    for number, name in enumerate(IMAGENET_C_BAR):
        plain = corruptions.get(name).name
        for k, level in enumerate(SELECTED["imagenet_c_bar"][plain], 1):
            folder = f"{severities.scan(plain, 'imagenet')[level - 1]:.2f}" if printed else str(k)
            for label in ("n01440764", "n01443537"):
                path = tmp_path / name / folder / label / "ILSVRC2012_val_00000001.JPEG"
                path.parent.mkdir(parents=True)
                Image.new("RGB", (16, 16), (10 * number + k,) * 3).save(path, quality=85, optimize=True)
    dataset = open_corrupted(tmp_path, threads=1)
    assert dataset.conditions() == tuple((name, k) for name in corruptions.names("imagenet_c_bar") for k in range(1, 6))
    for number, name in enumerate(IMAGENET_C_BAR):
        for k in range(1, 6):
            ((images, labels),) = dataset.batches(corruptions.get(name).qualified_name, k, 8)
            assert np.abs(images.astype(int) - (10 * number + k)).max() <= 1 and labels.tolist() == [0, 1]
