"""projects.structural.flips: arrays as CIFAR-10-P is published, folders of frames, the stand-in, and refusals."""

import os

import numpy as np
import pytest
from PIL import Image

from projects.structural import standin
from projects.structural.flips import open_sequences

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 2, 16, 17, 3)).astype(np.uint8)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "rotate.npy", PIXELS)
    np.save(tmp_path / "labels.npy", np.zeros(3, np.uint8))
    for i, frames in enumerate(PIXELS):
        place = tmp_path / "gaussian_noise" / f"n{i % 2}" / f"picture{i}"
        place.mkdir(parents=True)
        for j, frame in enumerate(frames):
            Image.fromarray(frame).save(place / f"{j:02}.png")
    return tmp_path


def test_arrays_and_folders_of_frames_give_the_same_sequences(folder):
    noise, rotate = open_sequences(folder)
    assert (noise.name, rotate.name) == ("gaussian_noise", "rotate") and noise.shape == rotate.shape == PIXELS.shape
    np.testing.assert_array_equal(rotate.read(1, 3), PIXELS[1:])
    np.testing.assert_array_equal(noise.read(0, 3), PIXELS[[0, 2, 1]])  # by class, then by name
    assert [found.name for found in open_sequences(folder, ["rotate"])] == ["rotate"]


def test_what_is_no_set_of_sequences_is_refused_by_name(folder):
    with pytest.raises(FileNotFoundError, match="expected tilt, found gaussian_noise, rotate"):
        open_sequences(folder, ["tilt", "rotate"])
    with pytest.raises(FileNotFoundError, match=r"expected PERTURBATION\.npy or"):
        open_sequences(folder / "gaussian_noise" / "n0" / "picture0")
    (folder / "gaussian_noise" / "n1" / "picture1" / "01.png").unlink()
    with pytest.raises(ValueError, match="equally many images, two at least, found 3 of 1, 2 images"):
        open_sequences(folder)
    Image.new("RGB", (20, 16)).save(folder / "gaussian_noise" / "n1" / "picture1" / "01.png")
    with pytest.raises(ValueError, match=r"01\.png: expected 16x17 pixels, found 16x20"):
        open_sequences(folder)[0].read(0, 3)
    np.save(folder / "rotate.npy", PIXELS[0])
    with pytest.raises(
        ValueError, match=r"rotate\.npy: expected uint8 \[sequences, frames, H, W, 3\].*\[2, 16, 17, 3\]"
    ):
        open_sequences(folder)
    np.save(folder / "gaussian_noise.npy", PIXELS)
    with pytest.raises(ValueError, match=r"expected gaussian_noise\.npy or gaussian_noise/, found both"):
        open_sequences(folder, ["rotate"])


def test_a_frame_that_was_replaced_changes_the_stamp(folder):
    stamps = [found.stamp for found in open_sequences(folder)]
    assert [found.stamp for found in open_sequences(folder)] == stamps
    Image.fromarray(PIXELS[0, 0]).save(folder / "gaussian_noise" / "n1" / "picture1" / "01.png", compress_level=0)
    noise, rotate = open_sequences(folder)
    assert noise.stamp != stamps[0] and rotate.stamp == stamps[1]
    path = folder / "rotate.npy"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # of equal size and time
    assert open_sequences(folder)[1].stamp != rotate.stamp


def test_frames_are_read_as_other_images_are(folder, monkeypatch):
    (first, *_) = sorted((folder / "gaussian_noise").rglob("*.png"))
    Image.fromarray(np.full((16, 17), 257 * 100, np.uint16)).save(first)
    assert (open_sequences(folder, ["gaussian_noise"])[0].read(0, 1)[0, 0] == 100).all()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"00\.png is damaged \(DecompressionBombError"):
        open_sequences(folder)


def test_the_stand_in_perturbs_as_it_says(tmp_path):
    images = np.full((2, 16, 16, 3), 100, np.uint8)
    images[:, :, 0] = 200
    standin.write_sequences(tmp_path / "made", standin.draw_sequences(images))
    made = {found.name: found.read(0, 2) for found in open_sequences(tmp_path / "made")}
    assert all(array.shape == (2, standin.FRAMES, 16, 16, 3) for array in made.values())
    noise = made["gaussian_noise"].astype(float) - images[:, None]
    assert not noise[:, 0].any() and noise[:, 1:].std() == pytest.approx(255 * 0.02, rel=0.02)
    assert (made["brightness"][:, 15] == images).all() and made["brightness"][0, 16, 5, 5, 0] == 104
    assert (made["translate"][:, 17, :, 2] == 200).all() and (made["translate"][:, 15] == images).all()
