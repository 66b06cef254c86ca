"""projects.structural.flips and flip_rates: files of sequences, what is measured once, rates by the published definitions."""

import os

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from PIL import Image

from corruptions.scoring import intervals
from projects.structural import flip_rates, flips, standin
from projects.structural.flip_rates import read_flips
from projects.structural.flips import Sequences, open_sequences
from runtime import meshes
from runtime.settings import SettingsError
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny
from tools import exits

ZEROS = np.zeros((4, 2, 32, 32, 3), np.uint8)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A workdir of an untrained network, sequences, and which were shown to it: each frame flips in half of them."""
    shown = []

    def best_classes(models, sequences, batch_size, mesh):
        shown.append(sequences.name)
        assert list(models) == [("standard", 0)] and batch_size == 32
        best = np.tile(np.arange(5), (*sequences.shape[:2], 1))
        best[::2, 1] = best[::2, 1, ::-1]
        return {key: best for key in models}

    monkeypatch.setattr(flips, "best_classes", best_classes)
    (tmp_path / "given").mkdir()
    for name in ("gaussian_noise", "tilt"):
        np.save(tmp_path / "given" / f"{name}.npy", ZEROS)
    return tiny.untrained_workdir(tmp_path / "work", tiny.config()), tmp_path / "given", shown


def test_flips_are_measured_once_and_rates_are_relative_to_a_reference(work, capsys):
    workdir, given, shown = work
    np.save(given / "other.npy", ZEROS[:, :, 16:])
    refuses(lambda: flips.run(tiny.config(), workdir, given), "[16, 32, 3] in other")
    assert not shown
    (given / "other.npy").unlink()
    rows = flips.run(tiny.config(), workdir, given)
    assert shown == ["gaussian_noise", "tilt"] and "mFR" not in capsys.readouterr().out
    assert [row[2:6] for row in rows] == [("gaussian_noise", 4, 2, 0.5), ("tilt", 4, 2, 0.5)]
    assert rows[0].flip_probability_se == pytest.approx(intervals.of_accuracy(0.5, 4))
    assert rows[0].top_distance == 6  # |1 - 5| + |2 - 4| + 0 + 2 + 4 in half of the sequences
    np.save(given / "tilt.npy", ZEROS[:3])
    refuses(lambda: flips.run(tiny.config(), workdir, given, str(workdir)), "4 of 2 frames")
    assert len(flips.run(tiny.config(), workdir, given)) == 2 and shown[2:] == ["tilt"]  # its file changed
    assert flips.run(tiny.config(), workdir, given, str(workdir), ["gaussian_noise"]) == rows[:1]
    assert "| mFR | 100.0 |" in capsys.readouterr().out
    # The result of tilt, which was not asked for again, is kept.
    assert [row.perturbation for row in read_flips(workdir)] == ["gaussian_noise", "tilt"]
    np.save(given / "tilt.npy", ZEROS)
    flips.run(tiny.config(), workdir, given, perturbations=["gaussian_noise"])
    assert [row.perturbation for row in read_flips(workdir)] == ["gaussian_noise"] and len(shown) == 3


@pytest.mark.parametrize("command", [lambda *given: flips.run(*given, given[1]), exits.run])
def test_settings_of_eval_that_are_not_applied_are_refused(tmp_path, command):
    config = tiny.config()
    config.eval.enhance, config.eval.stored = "clahe", "DIR"
    refuses(lambda: command(config, tmp_path / "none"), "'clahe'", "config.eval.stored ''", kind=SettingsError)


FRAMES = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16, 3)).astype(np.uint8)
SEQUENCES = Sequences("rotate", FRAMES.shape, FRAMES, (0, 0))


class FirstPixels(nnx.Module):
    """Its logits are the first seven levels of an image, times a parameter."""

    def __init__(self, factor):
        self.factor = nnx.Param(jnp.float32(factor))

    def __call__(self, images, train):
        return images.reshape(len(images), -1)[:, :7].astype(jnp.float32) * self.factor[...], {}


@pytest.mark.parametrize("batch_size", [7, 2])  # two sequences of three frames, and less than one
def test_the_five_best_classes_of_every_frame(batch_size):
    models = {("standard", 0): known.split(FirstPixels(1)), ("standard", 1): known.split(FirstPixels(-1))}
    found = flips.best_classes(models, SEQUENCES, batch_size, meshes.data_mesh(1))
    logits = FRAMES.reshape(5, 3, -1)[..., :7].astype(int)
    for seed, sign in ((0, -1), (1, 1)):
        best = np.argsort(sign * logits, axis=-1, kind="stable")[..., :5]
        np.testing.assert_array_equal(found["standard", seed], best)


def test_a_network_that_diverged_is_not_called_steady():
    refuses(
        lambda: flips.best_classes(
            {("standard", 0): known.split(FirstPixels(np.nan))}, SEQUENCES, 7, meshes.data_mesh(1)
        ),
        "NaN",
    )


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
    assert [found.name for found in open_sequences(folder, ["rotate", "rotate"])] == ["rotate"]


def test_frames_are_read_as_stored_or_turned(tmp_path):
    orientation = Image.Exif()
    orientation[0x0112] = 6
    for i, frames in enumerate(PIXELS):
        (tmp_path / "rotate" / str(i)).mkdir(parents=True)
        for j, frame in enumerate(frames):
            Image.fromarray(frame).save(tmp_path / "rotate" / str(i) / f"{j}.png", exif=orientation)
    (stored,), (turned,) = open_sequences(tmp_path), open_sequences(tmp_path, turn=True)
    np.testing.assert_array_equal(stored.read(0, 3), PIXELS)
    np.testing.assert_array_equal(turned.read(0, 3), np.rot90(PIXELS, -1, (2, 3)))
    assert (
        turned.shape == (3, 2, 17, 16, 3) and turned.stamp != stored.stamp
    )  # results of one are not those of the other


@pytest.mark.parametrize("form", ["{}.png", "frame{}.png", "img_{}_left.png"])
def test_frames_without_zeros_in_front_are_in_the_order_of_their_numbers(tmp_path, form):
    for picture in ("a", "b"):
        for i in range(12):
            (tmp_path / "rotate" / picture).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), (i, i, i)).save(tmp_path / "rotate" / picture / form.format(i + 1))
    (rotate,) = open_sequences(tmp_path)
    assert rotate.read(0, 2)[:, :, 0, 0, 0].tolist() == [list(range(12))] * 2


def test_what_is_no_set_of_sequences_is_refused_by_name(folder):
    refuses(lambda: open_sequences(folder, ["tilt", "rotate"]), "gaussian_noise, rotate", kind=FileNotFoundError)
    refuses(
        lambda: open_sequences(folder / "gaussian_noise" / "n0" / "picture0"),
        "PERTURBATION.npy or",
        kind=FileNotFoundError,
    )
    (folder / "gaussian_noise" / "n1" / "picture1" / "01.png").unlink()
    refuses(lambda: open_sequences(folder), "3 of 1, 2 images")
    Image.new("RGB", (20, 16)).save(folder / "gaussian_noise" / "n1" / "picture1" / "01.png")
    refuses(lambda: open_sequences(folder)[0].read(0, 3), "16x20")
    np.save(folder / "rotate.npy", PIXELS[0])
    refuses(lambda: open_sequences(folder), "frames, H, W, 3]", "[2, 16, 17, 3]")
    np.save(folder / "gaussian_noise.npy", PIXELS)
    refuses(lambda: open_sequences(folder, ["rotate"]), "both")


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
    refuses(lambda: open_sequences(folder), "00.png", "DecompressionBombError")


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


CLASSES = 9


@pytest.fixture
def order():
    """Classes by falling logit of 3 sequences of 4 frames, all of them: int [3, 4, 9]."""
    return np.random.default_rng(0).permuted(np.tile(np.arange(CLASSES), (3, 4, 1)), axis=-1)


def distance(first, second):
    """d of section 4.2: the steps between the places of a class that cross one of the first five,
    summed over the five best classes.
    """
    total = 0
    for i in range(1, 6):
        place = list(second).index(first[i - 1]) + 1
        total += sum(1 <= j - 1 <= 5 for j in range(min(i, place) + 1, max(i, place) + 1))
    return total


@pytest.mark.parametrize("noise", [False, True])
def test_both_measures_are_as_published(order, noise):
    best = order[..., : flip_rates.BEST]
    pairs = [[(frames[0 if noise else j - 1], frames[j]) for j in range(1, 4)] for frames in order]
    expected = [np.mean([a[0] != b[0] for a, b in sequence]) for sequence in pairs]
    np.testing.assert_allclose(flip_rates.flip_probabilities(best, noise), expected)
    expected = [np.mean([distance(a, b) for a, b in sequence]) for sequence in pairs]
    np.testing.assert_allclose(flip_rates.top_distances(best, noise), expected)


def row(name, flip, top, seed=0, sequences=10):
    return flip_rates.Flips("standard", seed, name, sequences, 31, flip, 0.01, top, 0.1)


def test_rates_are_means_of_ratios_and_not_ratios_of_means(tmp_path):
    reference = [row("rotate", 0.1, 2.0), row("gaussian_noise", 0.4, 1.0)]
    rows = [row("rotate", 0.05, 3.0), row("gaussian_noise", 0.4, 0.5)]
    flip_rates.write_flips(tmp_path / "flips.csv", reference, "made up")
    assert flip_rates.read_flips(tmp_path) == reference
    found = flip_rates.rates(rows, flip_rates.read_flips(tmp_path))
    assert found["standard", 0].flips == pytest.approx({"rotate": 50, "gaussian_noise": 100})
    assert found["standard", 0][1:] == pytest.approx((75, 100))
    assert flip_rates.rates(reference, reference)["standard", 0][1:] == (100, 100)
    table = flip_rates.text(rows, found)
    assert "| rotate | 5.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}1.0 |" in table and "| mFR | 75.0 |" in table
    assert "mFR" not in flip_rates.text(rows, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a table, found none"),
        ("model,seed\na,0\n", "expected the columns model,seed,perturbation,.*found model,seed"),
        (",".join(flip_rates.Flips._fields) + "\na,0,tilt,x,31,.1,.1,.1,.1\n", "line 2: expected a row of numbers"),
        (",".join(flip_rates.Flips._fields) + "\na,0,tilt\n", "line 2: expected a row of numbers"),
        (",".join(flip_rates.Flips._fields) + "\na,0,tilt,9,31,nan,.1,1,.1\n", "line 2: .* found nan and 1"),
        (",".join(flip_rates.Flips._fields) + "\na,0,tilt,9,31,.1,.1,16,.1\n", "line 2: .* found 0.1 and 16"),
    ],
)
def test_files_that_hold_no_flips_are_refused(tmp_path, content, message):
    (tmp_path / "flips.csv").write_text(content)
    with pytest.raises(ValueError, match=rf"flips\.csv.*{message}"):
        flip_rates.read_flips(tmp_path)
    with pytest.raises(FileNotFoundError):
        flip_rates.read_flips(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "reference, message",
    [
        ([], "a reference of one model, found none"),
        ([row("rotate", 0.1, 1.0), row("rotate", 0.1, 1.0, seed=1)], "a reference of one model, found .*1"),
        ([row("tilt", 0.1, 1.0)], "of rotate in the reference, found none"),
        ([row("rotate", 0.1, 1.0, sequences=9)], "10 sequences of 31 frames of rotate .* found 9 of 31 frames"),
        ([row("rotate", 0.0, 1.0)], "whose answers change under rotate"),
    ],
)
def test_references_that_do_not_fit_are_refused(reference, message):
    with pytest.raises(ValueError, match=message):
        flip_rates.rates([row("rotate", 0.1, 1.0)], reference)
