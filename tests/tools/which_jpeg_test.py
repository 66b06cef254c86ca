"""`tools.which_jpeg` on folders that either library made, in both published forms."""

import jax
import numpy as np
import pytest
from absl import flags
from PIL import Image

import corruptions
from corruptions.primitives.jpeg import CODECS
from tests.reference.photographs import photographs
from tests.refusing import refuses
from tools import which_jpeg

CLEAN = photographs(12, 32, 32)


def write(folder, codec, images=CLEAN):
    folder.mkdir()
    key = jax.random.key(0)
    made = [np.asarray(corruptions.corrupt(key, images, "jpeg_compression", s, codec=codec)) for s in range(1, 6)]
    np.save(folder / "jpeg_compression.npy", np.concatenate(made))
    np.save(folder / "labels.npy", np.tile(np.arange(len(images)), 5))
    return folder


def write_tree(folder, images, suffix, codec):
    """Writes the published form of ImageNet-C, `corruption/severity/class/image`: two classes; JPEGs have quality 85."""
    key = jax.random.key(0)
    for severity in range(1, 6):
        made = np.asarray(corruptions.corrupt(key, images, "jpeg_compression", severity, codec=codec))
        write_classes(folder / "jpeg_compression" / str(severity), made, suffix, quality=85)
    return folder


def write_classes(folder, images, suffix=".png", **options):
    for place, image in enumerate(images):
        of_class = folder / f"n0000000{2 * place // len(images)}"
        of_class.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(of_class / f"{place:02}{suffix}", **options)
    return folder


def run(folder, clean, capsys):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["which_jpeg"])
    given = flags.FLAGS
    before = given.clean
    given.clean = str(clean)
    try:
        status = which_jpeg.run(folder, given)
    finally:
        given.clean = before
    return status, capsys.readouterr()


@pytest.mark.parametrize("codec", CODECS)
def test_the_library_that_made_a_folder_is_named(codec, tmp_path, capsys):
    np.save(tmp_path / "clean.npy", CLEAN[::-1])  # in another order
    status, said = run(write(tmp_path / "CIFAR-10-C", codec), tmp_path / "clean.npy", capsys)
    assert status == 0 and f"was made by {codec}" in said.out
    rows = [line.split("\t") for line in said.out.splitlines()[1:6]]
    column = 1 + CODECS.index(codec)
    assert all(float(row[column]) == 1 and float(row[3 - column]) < 0.9 for row in rows)


def test_other_images_and_missing_files_are_a_line(tmp_path, capsys):
    folder = write(tmp_path / "made", CODECS[0])
    np.save(tmp_path / "others.npy", photographs(24, 32, 32)[12:])
    status, said = run(folder, tmp_path / "others.npy", capsys)
    assert status == 1 and "expected one share of 1" in said.err and said.err.count("\n") == 1
    np.save(tmp_path / "larger.npy", photographs(2, 40, 40))
    refuses(lambda: run(folder, tmp_path / "larger.npy", capsys), "images [32, 32, 3]")
    (folder / "jpeg_compression.npy").rename(folder / "fog.npy")
    refuses(lambda: run(folder, tmp_path / "others.npy", capsys), "imagenet_c/fog")
    refuses(lambda: run(tmp_path / "absent", tmp_path / "others.npy", capsys), "folder", kind=FileNotFoundError)


@pytest.mark.parametrize(
    ("suffix", "codec"), [(".JPEG", "libjpeg-turbo"), (".png", "libjpeg9"), (".png", "libjpeg-turbo")]
)
def test_the_library_that_made_a_tree_of_files_is_named(suffix, codec, tmp_path, capsys):
    """JPEGs as ImageNet-C's, which this machine's libjpeg-turbo writes, and files without loss; images above 64x64 keep their order."""
    images = photographs(4, 72, 80)
    clean = write_classes(tmp_path / "clean", images)
    status, said = run(write_tree(tmp_path / "made", images, suffix, codec), clean, capsys)
    assert status == 0 and f"was made by {codec}" in said.out
    rows = [line.split("\t") for line in said.out.splitlines()[1:6]]
    assert all(float(row[1 + CODECS.index(codec)]) == 1 for row in rows)


def test_a_folder_that_is_no_dataset_is_a_line(tmp_path, capsys):
    images = photographs(4, 72, 80)
    clean, made = write_classes(tmp_path / "clean", images), write_tree(tmp_path / "made", images, ".jpg", CODECS[0])
    for folder in (clean, made / "jpeg_compression"):  # class/image, and one corruption's severities
        with pytest.raises(
            FileNotFoundError, match=r"expected files .* or folders corruption/severity/class/image"
        ) as caught:
            run(folder, clean, capsys)
        assert "\n" not in str(caught.value)
    (clean / "n00000000" / "00.png").unlink()
    refuses(lambda: run(made, clean, capsys), "--clean: expected 4 images as")
