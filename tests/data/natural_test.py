"""Natural test sets read from generated folders, arrays and tfds; class maps against tfds's list."""

import importlib.resources

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

from data.natural import open_natural, sets
from tests.data import records
from tests.refusing import refuses

IMAGENET = importlib.resources.files("tensorflow_datasets.datasets.imagenet2012")
WORDNET = IMAGENET.joinpath("labels.txt").read_text().split()


def picture(path, shade, side=8, border=None):
    """A grey picture of one shade, with a border of 2 pixels in another colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((side, side, 3), shade, np.uint8)
    if border is not None:
        pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:] = [border] * 4
    Image.fromarray(pixels).save(path)


def tree(root, folders, **options):
    """One picture a folder, its shade the folder's number modulo 250."""
    for number, name in enumerate(folders):
        picture(root / name / "one.png", number % 250, **options)
    return root


@pytest.fixture
def read(tmp_path):
    """Reads a set below tmp_path at 8 pixels, or another size."""
    return lambda name, size=8: open_natural(name, tmp_path, size, cache_dir=tmp_path / "cache")


@pytest.fixture(scope="module")
def renditions(tmp_path_factory):
    """ImageNet-R with one picture a class."""
    root = tmp_path_factory.mktemp("renditions")
    tree(root / "imagenet-r", sets.imagenet("imagenet_r").groups)
    (root / "imagenet-r" / "README.txt").write_text("Not a class.")
    return root


def positions(known):
    """{group: set of positions among ImageNet's classes}."""
    found = {}
    for name, group in known.groups.items():
        found.setdefault(group, set()).add(WORDNET.index(name))
    return found


def test_imagenets_classes_are_in_wordnet_order():
    assert list(sets.imagenet().groups) == WORDNET == sorted(WORDNET)
    assert list(sets.imagenet().groups.values()) == list(range(1000))


def test_subsets_have_the_published_classes():
    of_a, of_r = (positions(sets.imagenet(name)) for name in ("imagenet_a", "imagenet_r"))
    flat = [{position for group in found.values() for position in group} for found in (of_a, of_r)]
    assert [len(found) for found in (of_a, of_r)] == [len(found) for found in flat] == [200, 200]
    assert len(flat[0] & flat[1]) == 86
    assert (min(flat[0]), max(flat[0]), min(flat[1]), max(flat[1])) == (6, 988, 1, 988)
    assert of_r[0] == {1} and of_r[199] == {988} and sets.imagenet("imagenet_r").folders["n01443537"] == 0


def test_objects_of_objectnet_are_one_class_or_more():
    known = sets.objectnet()
    found = positions(known)
    assert len(known.folders) == known.number == 113 and len(known.groups) == 125
    assert found[known.folders["chair"]] == {423, 559, 765} and found[known.folders["t-shirt"]] == {610}


def test_a_models_classes_are_found_by_name():
    groups = sets.imagenet("imagenet_r").of_model(WORDNET, "imagenet_r")
    assert groups.dtype == np.int32 and groups[[0, 1, 2, 988, 999]].tolist() == [-1, 0, 1, 199, -1]
    of_100 = sets.imagenet("imagenet_r").of_model(WORDNET[::10], "imagenet_r")
    np.testing.assert_array_equal(of_100, groups[::10])
    refuses(lambda: sets.imagenet("imagenet_r").of_model(sets.CIFAR10, "imagenet_r"), "of 10 others (airplane")


def test_folders_by_wordnet_id_become_groups(renditions, tmp_path):
    found = open_natural("imagenet_r", renditions, 8, cache_dir=tmp_path)
    assert found.split.images.shape == (200, 8, 8, 3)
    np.testing.assert_array_equal(found.split.labels, np.arange(200))
    np.testing.assert_array_equal(found.split.images[:, 4, 4, 0], np.arange(200))
    assert found.provenance["source"] == str(renditions / "imagenet-r") and found.provenance["size"] == 200


def test_pictures_are_squashed_when_the_models_are_shown_such(tmp_path):
    folders = tree(tmp_path / "imagenet_r", sets.imagenet("imagenet_r").groups)
    wide = np.random.default_rng(0).integers(0, 256, (9, 20, 3), np.uint8)
    Image.fromarray(wide).save(min(folders.iterdir()) / "one.png")
    found = open_natural("imagenet_r", tmp_path, 8, resize="squash", cache_dir=tmp_path / "cache")
    expected = Image.fromarray(wide).resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(found.split.images[0], np.asarray(expected))
    assert found.provenance["preprocess"].startswith("both sides 8, bilinear")


def test_a_set_without_some_classes_or_with_others_is_refused(renditions, read, tmp_path):
    (tmp_path / "imagenet_r").symlink_to(renditions / "imagenet-r")
    picture(tmp_path / "imagenet_a" / "n01440764" / "a.png", 1)
    picture(tmp_path / "imagenet_a" / "n01498041" / "a.png", 1)
    refuses(lambda: read("imagenet_a"), "2 folders; missing", "n01440764")
    assert read("imagenet_r").split.labels.size == 200


def test_folders_by_number_are_read_as_numbers(read, tmp_path):
    tree(tmp_path / "imagenetv2-matched-frequency-format-val", map(str, range(1000)))
    found = read("imagenet_v2").split  # in the order of the folders' names: 0, 1, 10, 100, ...
    assert found.labels[:4].tolist() == [0, 1, 10, 100]
    np.testing.assert_array_equal(found.images[:, 4, 4, 0], found.labels % 250)


def test_objectnets_border_is_cut_off_and_other_objects_are_left_out(tmp_path):
    known = sets.objectnet()
    root = tmp_path / "objectnet-1.0" / "images"
    tree(root, [*known.folders, "air_freshener"], side=20, border=(255, 0, 0))
    (tmp_path / "objectnet-1.0" / "mappings").mkdir()
    found = open_natural("objectnet", tmp_path, 16, resize="squash", cache_dir=tmp_path / "cache").split
    assert len(found.labels) == 113 and set(found.labels.tolist()) == set(range(113))
    of_chair = found.images[found.labels == known.folders["chair"]][0]
    assert (of_chair == list(known.folders).index("chair")).all()


def test_cifar_10_1_is_read_from_its_arrays(read, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    (tmp_path / "CIFAR-10.1" / "datasets").mkdir(parents=True)
    np.save(tmp_path / "CIFAR-10.1" / "datasets" / "cifar10.1_v6_data.npy", images)
    np.save(tmp_path / "CIFAR-10.1" / "datasets" / "cifar10.1_v6_labels.npy", np.arange(12) % 10)
    found = read("cifar10_1", 32).split
    np.testing.assert_array_equal(found.images, images)
    np.testing.assert_array_equal(found.labels, np.arange(12) % 10)
    for name, size, error, message in (
        ("cifar10_1_v4", 32, FileNotFoundError, "cifar10_1_v4 in .* as one of cifar10_1_v4, cifar10_1, CIFAR"),
        ("cifar10_1", 224, ValueError, "cifar10_1 has 32x32 images, expected a model of this size, found 224"),
        ("imagenet-r", 8, ValueError, "expected natural test sets among imagenet_v2, .* did you mean 'imagenet_r'"),
    ):
        with pytest.raises(error, match=message):
            read(name, size)


def test_cifars_own_images_in_cinic_are_no_shift_and_a_damaged_one_is_named(read, tmp_path):
    for number, name in enumerate(sets.CIFAR10):
        picture(tmp_path / "CINIC-10" / "test" / name / f"n0{number}_1.png", number, side=32)
        picture(tmp_path / "CINIC-10" / "test" / name / "cifar10-train-7.png", 200, side=32)
        picture(tmp_path / "CINIC-10" / "train" / name / "n01_1.png", 201, side=32)
    found = read("cinic10", 32).split
    np.testing.assert_array_equal(found.images[:, 0, 0, 0], np.arange(10))
    np.testing.assert_array_equal(found.labels, np.arange(10))
    (tmp_path / "CINIC-10" / "test" / "cat" / "n03_1.png").write_bytes(b"no image")
    refuses(lambda: read("cinic10", 32), "ones, copy them again", "cat/n03_1.png")


def test_records_of_tfds_become_groups(read, tmp_path):
    for name, kind, side, labels in (
        ("imagenet_a", {"names": WORDNET}, 8, (6, 11, 988)),
        ("cifar10_1", {"num_classes": 10}, 32, (9, 0, 3)),
    ):
        rows = [{"image": np.full((side, side, 3), label % 250, np.uint8), "label": label} for label in labels]
        records.write(tmp_path, name, {"test": rows}, "0.1.0", label=tfds.features.ClassLabel(**kind))
    (tmp_path / "cifar10_1" / "v6").mkdir()
    (tmp_path / "cifar10_1" / "0.1.0").rename(tmp_path / "cifar10_1" / "v6" / "0.1.0")
    found = read("imagenet_a").split
    assert found.labels.tolist() == [0, 1, 199] and found.images[:, 0, 0, 0].tolist() == [6, 11, 238]
    assert found.index.tolist() == [0, 1, 2]
    assert read("cifar10_1", 32).split.labels.tolist() == [9, 0, 3]
