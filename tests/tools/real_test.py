"""tools.real and the photographs it shows: labels, errors and intervals of a made-up network, and what is refused."""

import numpy as np
import pytest
from PIL import Image

import data
from data.natural import sets
from evaluation import packaged
from tools import real

WORDNET = list(sets.imagenet().groups)
FOLDERS = (WORDNET[3], WORDNET[900], "17")  # two by their IDs, one by its number
LABELS = {WORDNET[3]: 3, WORDNET[900]: 900, "17": 17}


@pytest.fixture
def folder(tmp_path):
    """Eight photographs of each of three classes, grey of 20 + 30 times their number; a folder of no class."""
    for name in (*FOLDERS, "holiday"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (32, 32), (20 + 30 * number,) * 3).save(tmp_path / "images" / name / f"{number}.png")
    return tmp_path / "images"


def test_photographs_have_the_labels_of_their_classes(folder):
    found = data.load("photographs", data_dir=folder, image_size=32, resize="squash")
    assert found.class_names == tuple(WORDNET) and len(found.train) == 0 and len(found.test) == 24
    names = sorted(FOLDERS)
    assert found.test.labels.tolist() == np.repeat([LABELS[name] for name in names], 8).tolist()
    assert found.test.images[:8, 0, 0, 0].tolist() == [20 + 30 * number for number in range(8)]
    assert len(data.load("photographs", data_dir=folder, image_size=32, test_limit=3).test) == 3


@pytest.mark.parametrize("made", [(), ("holiday",), (WORDNET[0],)])
def test_a_folder_without_photographs_is_refused_in_one_line(made, tmp_path):
    for name in made:
        (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected .*folder") as caught:
        data.load("photographs", data_dir=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.fixture
def network(monkeypatch):
    """A network that answers class 3 where an image is bright, else 17."""

    def predict(images):
        bright = np.asarray(images).mean((1, 2, 3)) > 0.5
        return np.eye(1000, dtype=np.float32)[np.where(bright, 3, 17)]

    monkeypatch.setattr(packaged, "predictor", lambda name: (predict, 32, f"{name} of a test"))


def test_errors_are_counted_by_photograph(folder, network, tmp_path):
    given = {
        "names": ("imagenet_c/brightness", "imagenet_c/contrast", "imagenet_c/jpeg_compression"),
        "resize": "squash",
    }
    text = real.run(folder, tmp_path / "run", **given)
    errors = (tmp_path / "run" / "errors.md").read_text()
    # Greys 140 to 230 are bright: 4 of class 3, 4 of class 17, none of class 900.
    assert (
        errors.startswith("efficientnet-lite0 on 24 photographs of 3 classes, 32 pixels")
        and "Clean error, %: 66.7 [" in errors
    )
    assert "is not known" in errors and "CE of other images says nothing beside published" in text
    assert "Rank correlation" not in errors and (tmp_path / "run" / "ce.txt").exists()
    contrast = errors.split("| imagenet_c/contrast |")[1].split("|")
    assert all(66.6 < float(cell.split("[")[0]) < 66.8 for cell in contrast[:5])  # keeps each mean on its side of grey


def test_the_interval_of_many_draws_is_over_photographs(folder, network, tmp_path):
    """A corruption that changes no answer gives the same numbers however often it is drawn; CE is not made."""
    names, widths = ("imagenet_c/contrast",), []
    for draws in (1, 3):
        real.run(folder, tmp_path / str(draws), names=names, severity="2,3", draws=draws, resize="squash")
        errors = (tmp_path / str(draws) / "errors.md").read_text()
        widths.append(errors.split("Clean error, %: ")[1].split(".\n")[0])
    assert widths[0] == widths[1] and not (tmp_path / "3" / "ce.txt").exists()


def test_where_error_falls_is_named_with_a_paired_interval():
    rng = np.random.default_rng(0)
    wrong = {("imagenet_c/snow", str(level)): np.zeros(200) for level in range(1, 6)}
    for level, errors in enumerate((20, 60, 40, 80, 90), 1):
        wrong["imagenet_c/snow", str(level)][:errors] = 1
    wrong["imagenet_c/fog", "1"], wrong["imagenet_c/fog", "2"] = np.zeros(200), rng.integers(0, 2, 200).astype(float)
    lines = real.falls(wrong).splitlines()[2:]
    assert (
        len(lines) == 1
        and lines[0].startswith("| imagenet_c/snow | 2 to 3 | -10.0 [")
        and lines[0].endswith("| -1.9 |")
    )
    low, high = map(float, lines[0].split("[")[1].split("]")[0].split(", "))
    assert low < -10 < high < 0  # 20 of 200 photographs become right, none wrong


def test_an_order_like_alexnets_has_a_rank_correlation_of_one():
    rng, wrong = np.random.default_rng(0), {}
    for place, (name, errors) in enumerate(sorted(real.alexnet().items(), key=lambda one: one[1].mean())):
        for level in range(1, 6):
            wrong[name, str(level)] = np.roll(np.arange(300) < 15 * (place + 1), rng.integers(300)).astype(float)
        assert errors.shape == (5,)
    text = real.likeness(wrong)
    assert "of the 19 mean errors with AlexNet's published ones: 1.00 (95 %" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| imagenet_c")]
    assert [row[2] for row in rows] == [row[4].rstrip(" |") for row in rows] == [str(rank) for rank in range(1, 20)]
