"""Published datasets: arrays as CIFAR-10-C, folders as ImageNet-C, the released C-bar, and those of tfds."""

import io
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import corruptions
from corruptions.cbar import SELECTED, severities
from data.corrupted import open_corrupted
from data.corrupted.dataset import parse_severity, published_order, published_severities, qualified
from tests.data import records
from tests.refusing import refuses

NUMBER = 7
LABELS = np.array([3, 1, 0, 1, 2, 3, 0])


def pixels(name, severity, shape=(NUMBER, 32, 32, 3)):
    """Noise that tells conditions apart."""
    return np.random.default_rng([severity, *name.encode()]).integers(0, 256, shape, np.uint8)


def whole(dataset, corruption, severity, batch_size=3):
    images, labels = zip(*dataset.batches(corruption, severity, batch_size))
    return np.concatenate(images), np.concatenate(labels)


def assert_read(dataset, expected, labels, size=4):
    """Every condition comes in batches of `size` and the rest, and holds the images `expected(name, severity)`."""
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, size))
        assert [len(images) for images, _ in batches] == [size] * (NUMBER // size) + [NUMBER % size]
        images, found = map(np.concatenate, zip(*batches))
        assert images.dtype == np.uint8 and found.dtype == np.int32
        assert np.array_equal(images, expected(name.split("/")[-1], severity)) and np.array_equal(found, labels)


@pytest.fixture
def arrays(tmp_path):
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    for name in ("fog", "gaussian_noise", "blue_noise_sample", "spatter"):
        np.save(folder / f"{name}.npy", np.concatenate([pixels(name, s) for s in range(1, 6)]))
    np.save(folder / "labels.npy", np.tile(LABELS, 5).astype(np.uint8))
    (folder / "README.txt").write_text("CIFAR-10-C")
    return folder


def test_arrays_as_published(arrays):
    dataset = open_corrupted(arrays)
    names = ["imagenet_c/gaussian_noise", "imagenet_c/fog", "imagenet_c/spatter", "cbar/blue_noise_sample"]
    assert dataset.conditions() == tuple((name, s) for name in names for s in range(1, 6))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (32, 32, 3), None)
    assert_read(dataset, pixels, LABELS, 3)
    assert np.array_equal(whole(dataset, "fog", "2")[0], pixels("fog", 2))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory in use")
def test_arrays_are_not_read_before_they_are_asked_for(tmp_path):
    def resident():
        """Bytes of memory this process holds, mapped files included."""
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    number = 600
    for name in ("fog", "snow"):  # sparse files of 450 MB each
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.uint8, (5 * number, 224, 224, 3))
    np.save(tmp_path / "labels.npy", np.zeros(5 * number, int))
    before = resident()
    images, _ = next(open_corrupted(tmp_path).batches("snow", 5, 4))
    assert images.shape == (4, 224, 224, 3) and images.flags.owndata
    assert resident() - before < 50e6
    touched = np.load(tmp_path / "snow.npy", mmap_mode="r")
    assert touched.max() == 0 and resident() - before > 400e6  # the measure would have seen it


def zeros(name, number, others=""):
    """Replaces an array by so many black images, and removes others."""

    def damage(folder):
        for path in folder.glob(f"{others}.npy" if others else "none"):
            path.unlink()
        np.save(folder / f"{name}.npy", np.zeros((number, 32, 32, 3), np.uint8))

    return damage


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda f: (f / "labels.npy").unlink(), FileNotFoundError, r"expected the file .*labels\.npy"),
        (lambda f: os.truncate(f / "fog.npy", 5000), ValueError, r"fog\.npy: expected an \.npy.*\(5000 bytes;.*copy"),
        (lambda f: (f / "fog.npy").write_bytes(b""), ValueError, r"fog\.npy: expected an \.npy file.*\(0 bytes;"),
        (lambda f: (f / "fog.npy").write_text("<html>not found"), ValueError, r"fog\.npy: expected an \.npy file"),
        (lambda f: np.save(f / "fog.npy", np.zeros((35, 32, 32, 3))), ValueError, r"fog\.npy: expected uint8.*float64"),
        (zeros("fog", 30), ValueError, r"fog\.npy: expected the shape \[35, 3.* of gaussian_noise\.npy, found \[30, 3"),
        (zeros("gaussian_noise", 12, "*"), ValueError, r"_noise\.npy: expected a multiple of 5 images.*found 12"),
        (lambda f: np.save(f / "labels.npy", LABELS), ValueError, r"labels\.npy: expected whole labels \[35\]"),
        (lambda f: np.save(f / "labels.npy", np.arange(35)), ValueError, r"same 7 labels for every severity"),
        (lambda f: [path.unlink() for path in f.glob("[!l]*.npy")], FileNotFoundError, "found no corruption in it"),
        (lambda f: [path.unlink() for path in f.glob("*.npy")], FileNotFoundError, "found neither"),
        (lambda f: f.rename(f.parent / "gone"), FileNotFoundError, "expected a folder, or one of .* found no .*CIFAR"),
    ],
)
def test_damaged_arrays_are_named(arrays, damage, error, message):
    damage(arrays)
    with pytest.raises(error, match=message):
        open_corrupted(arrays)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("fogg", 1, 2), r"imagenet_c/gaussian_noise, .*found 'fogg'; did you mean 'fog'"),
        (("fog", 6, 2), "no severity 6 of imagenet_c/fog; found severities 1, 2, 3, 4, 5"),
        (("fog", 1, 0), "batch_size of at least 1, found 0"),
    ],
)
def test_conditions_that_are_not_there_are_named(arrays, asked, message):
    with pytest.raises(ValueError, match=message):
        open_corrupted(arrays).batches(*asked)


CLASSES = ("n01440764", "n01443537", "n02077923", "n09288635")


def make_folders(root, conditions):
    for name, severity in conditions:
        for i, image in enumerate(pixels(name.split("/")[-1], severity, (NUMBER, 24, 40, 3))):
            path = root / f"{name}/{severity}/{CLASSES[LABELS[i]]}/ILSVRC2012_val_{i:08d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path, "JPEG", quality=85, optimize=True)


def test_the_content_of_a_condition_is_its_own(arrays, tmp_path):
    make_folders(tmp_path, [("blur/fog", 1), ("blur/fog", 2), ("snow", 1)])
    for dataset in (open_corrupted(arrays), open_corrupted(tmp_path)):
        before = {condition: dataset.content(*condition) for condition in dataset.conditions()}
        files = {condition[0] if dataset.path == arrays else condition for condition in before}
        assert len(set(before.values())) == len(files)
    path = next((tmp_path / "snow").rglob("*.JPEG"))
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = {condition: open_corrupted(tmp_path).content(*condition) for condition in before}
    assert [condition[0] for condition in before if before[condition] != after[condition]] == ["imagenet_c/snow"]


def decoded(name, severity):
    """Images as JPEG leaves them, by class and then by name."""
    images = []
    for image in pixels(name, severity, (NUMBER, 24, 40, 3)):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=85, optimize=True)
        images.append(np.asarray(Image.open(file)))
    return np.stack(images)[np.argsort(LABELS, kind="stable")]


@pytest.mark.parametrize("prefix", ["", "weather/"])
def test_folders_as_published(tmp_path, prefix):
    make_folders(tmp_path, [(f"{prefix}{name}", s) for name in ("snow", "frost", "perlin_noise") for s in (1, 3)])
    (tmp_path / "README.md").write_text("")
    dataset = open_corrupted(tmp_path, threads=2)
    names = ("imagenet_c/snow", "imagenet_c/frost", "cbar/perlin_noise")
    assert dataset.conditions() == tuple((name, s) for name in names for s in (1, 3))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (24, 40, 3), CLASSES)
    assert_read(dataset, decoded, np.sort(LABELS))
    for batch_size in (1, 2, 7, 100):
        images, labels = whole(dataset, "snow", 3, batch_size)
        assert np.array_equal(images, decoded("snow", 3)) and np.array_equal(labels, np.sort(LABELS))


def test_damaged_folders_are_named(tmp_path):
    make_folders(tmp_path, [("fog", s) for s in range(1, 6)])
    damaged = tmp_path / f"fog/2/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG"
    os.truncate(damaged, 300)
    Image.new("RGB", (30, 30)).save(tmp_path / f"fog/3/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG")
    (tmp_path / f"fog/4/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG").unlink()
    (tmp_path / "fog/5" / CLASSES[1]).rename(tmp_path / "fog/5/tench")
    dataset = open_corrupted(tmp_path)
    assert len(whole(dataset, "fog", 1)[0]) == NUMBER
    for severity, message in (
        (2, r"fog/2/n01440764/ILSVRC2012_val_00000006\.JPEG cannot be read"),
        (3, r"fog/3/n01440764/ILSVRC2012_val_00000006\.JPEG: expected an image of 24x40, found 30x30"),
        (4, r"fog/4: expected 7 images as in the other conditions, found 6"),
        (5, r"fog/5: expected the 4 class folders .* they differ in n01443537, tench"),
    ):
        with pytest.raises(ValueError, match=message):
            whole(dataset, "fog", severity)


def test_folders_without_images_are_refused(tmp_path):
    (tmp_path / "fog/1/n01440764").mkdir(parents=True)
    refuses(lambda: open_corrupted(tmp_path), "class folders with images", "none", kind=FileNotFoundError)


def test_two_copies_of_a_corruption_are_refused(arrays, tmp_path):
    make_folders(tmp_path, [("a/fog", 1), ("b/fog", 1)])
    refuses(lambda: open_corrupted(tmp_path), "each corruption once", "one of the two")
    both = shutil.copytree(arrays, tmp_path / "arrays")
    for name in ("glass_blur", "frosted_glass_blur"):
        shutil.copy(both / "fog.npy", both / f"{name}.npy")
    with pytest.raises(
        ValueError, match=r"each corruption once, found (frosted_)?glass_blur.npy and (frosted_)?glass_blur.npy"
    ):
        open_corrupted(both)


def test_a_folder_whose_name_is_no_finite_number_is_no_severity():
    assert [parse_severity(text) for text in ("nan", "inf", "-inf", "1.00", "0.25")] == [None, None, None, 1, 0.25]


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
    for benchmark in ("imagenet_c", "imagenet_c_extra", "cbar_candidates"):
        for name in corruptions.names(benchmark):
            for spelling in (corruptions.get(name).name, *corruptions.get(name).aliases):
                assert qualified(spelling) == name
    assert qualified("border") == "border"
    for released, benchmark in ((CIFAR10_C_BAR, "cifar10_c_bar"), (IMAGENET_C_BAR, "imagenet_c_bar")):
        assert sorted(map(qualified, released)) == sorted(corruptions.names(benchmark))
    ten = corruptions.names("imagenet_c_bar")
    assert published_order(["zebra", *sorted(ten), "fog"]) == ["fog", *ten, "zebra"]


def test_strengths_are_those_of_the_benchmark():
    for name, levels in SELECTED["imagenet_c_bar"].items():
        strengths = [severities.scan(name, "imagenet")[k - 1] for k in levels]
        folders = [f"{strength:.2f}" for strength in strengths]
        assert published_severities(name, sorted(folders)) == {f: k for k, f in enumerate(folders, 1)}
    assert published_severities("sparkles", ["1.00", "2.00", "3.00", "4.00", "5.00"]) == {}
    assert published_severities("sparkles", ["1", "2", "3", "5", "6"]) == {}  # in another order than printed
    assert published_severities("snow", ["1.00", "2.00", "3.00", "5.00", "6.00"]) == {}


def test_released_imagenet_c_bar_with_strengths_as_the_authors_program_prints_them(tmp_path):
    for number, name in enumerate(IMAGENET_C_BAR):
        plain = corruptions.get(name).name
        for k, level in enumerate(SELECTED["imagenet_c_bar"][plain], 1):
            for label in ("n01440764", "n01443537"):
                folder = tmp_path / name / f"{severities.scan(plain, 'imagenet')[level - 1]:.2f}" / label
                folder.mkdir(parents=True)
                Image.new("RGB", (16, 16), (10 * number + k,) * 3).save(folder / "ILSVRC2012_val_00000001.JPEG")
    dataset = open_corrupted(tmp_path, threads=1)
    assert dataset.conditions() == tuple((name, k) for name in corruptions.names("imagenet_c_bar") for k in range(1, 6))
    for number, name in enumerate(IMAGENET_C_BAR):
        for k in range(1, 6):
            ((images, labels),) = dataset.batches(corruptions.get(name).qualified_name, k, 8)
            assert np.abs(images.astype(int) - (10 * number + k)).max() <= 1 and labels.tolist() == [0, 1]


@pytest.fixture(scope="module")
def tfds_root(tmp_path_factory):
    """cifar10_corrupted with three of its 95 configurations, written by tfds itself without TensorFlow."""
    root, configs = tmp_path_factory.mktemp("tfds"), ("elastic_5", "fog_2", "fog_1")

    def splits(config):
        name, _, severity = config.rpartition("_")
        pairs = zip(pixels(name, int(severity)), LABELS)
        return {"test": [{"image": image, "label": int(label)} for image, label in pairs]}

    label = tfds.features.ClassLabel(num_classes=4)
    for config in configs:
        records.write(root, "cifar10_corrupted", splits, configs=configs, config=config, label=label)
    return root


def test_tfds(tfds_root, monkeypatch):
    dataset = open_corrupted("cifar10_corrupted", data_dir=tfds_root, threads=2)
    # tfds calls it elastic; published order puts it after fog.
    assert dataset.conditions() == (("imagenet_c/fog", 1), ("imagenet_c/fog", 2), ("imagenet_c/elastic_transform", 5))
    assert (dataset.number, dataset.image_shape) == (NUMBER, (32, 32, 3)) and len(dataset.class_names) == 4
    assert_read(dataset, lambda name, severity: pixels(name.partition("_")[0], severity), LABELS)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tfds_root))
    single = open_corrupted("cifar10_corrupted/fog_2")
    assert single.conditions() == (("imagenet_c/fog", 2),)
    assert np.array_equal(whole(single, "fog", 2)[0], pixels("fog", 2))
    assert "tensorflow" not in sys.modules


def test_imagenet_of_tfds_is_a_benchmark_of_its_own(tmp_path):
    configs = ("elastic_transform_5", "fog_1")
    label = tfds.features.ClassLabel(num_classes=4)
    for config in configs:
        name, _, severity = config.rpartition("_")
        rows = [{"image": image, "label": int(label)} for image, label in zip(pixels(name, int(severity)), LABELS)]
        records.write(
            tmp_path, "imagenet2012_corrupted", {"validation": rows}, configs=configs, config=config, label=label
        )
    dataset = open_corrupted("imagenet2012_corrupted", data_dir=tmp_path)
    names = [f"imagenet2012_corrupted/{name}" for name in ("fog", "elastic_transform")]
    assert dataset.conditions() == ((names[0], 1), (names[1], 5))
    assert np.array_equal(whole(dataset, names[0], 1)[0], pixels("fog", 1))
    assert np.array_equal(whole(dataset, "fog", 1)[0], pixels("fog", 1))
    assert dataset.preprocessing and "87.5 %" in dataset.preprocessing
    refuses(
        lambda: open_corrupted("imagenet2012_corrupted/snow_1", data_dir=tmp_path),
        "tfds build",
        "imagemagick",
        kind=FileNotFoundError,
    )


def test_tfds_that_is_not_there(tfds_root, tmp_path):
    folder = tmp_path / "cifar10_corrupted/fog_1/1.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"name": "cifar10_corrupted"}))
    for name, root, message in (
        ("cifar10_corrupted/snow_1", tfds_root, r"no prepared cifar10_corrupted/snow_1 .*\n.*tfds build cifar10_cor"),
        ("imagenet2012_corrupted", tmp_path, "no prepared imagenet2012_corrupted/<corruption>_<severity>"),
        ("cifar10_corrupted", tmp_path, "stored as tfrecord, expected array_record"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            open_corrupted(name, data_dir=root)
