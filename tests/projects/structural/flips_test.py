"""projects.structural.flips: files, what is measured once, the reference; the best classes on every frame."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from projects.structural import flips
from projects.structural.flip_rates import read_flips
from projects.structural.flips import Sequences
from runtime import meshes
from runtime.settings import SettingsError
from tests.training import tiny
from tools import exits
from training.states import TrainState

PIXELS = np.zeros((4, 2, 32, 32, 3), np.uint8)


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
        np.save(tmp_path / "given" / f"{name}.npy", PIXELS)
    return tiny.untrained_workdir(tmp_path / "work", tiny.config()), tmp_path / "given", shown


def test_flips_are_measured_once_and_rates_are_relative_to_a_reference(work, capsys):
    workdir, given, shown = work
    np.save(given / "other.npy", PIXELS[:, :, 16:])
    with pytest.raises(ValueError, match=r"frames \[32, 32, 3\] as shapes has images, found \[16, 32, 3\] in other"):
        flips.run(tiny.config(), workdir, given)
    assert not shown
    (given / "other.npy").unlink()
    rows = flips.run(tiny.config(), workdir, given)
    assert shown == ["gaussian_noise", "tilt"] and "mFR" not in capsys.readouterr().out
    assert [row[2:6] for row in rows] == [("gaussian_noise", 4, 2, 0.5), ("tilt", 4, 2, 0.5)]
    assert rows[0].flip_probability_se == pytest.approx(np.std([1, 0, 1, 0], ddof=1) / 2)
    assert rows[0].top_distance == 6  # |1 - 5| + |2 - 4| + 0 + 2 + 4 in half of the sequences
    np.save(given / "tilt.npy", PIXELS[:3])
    with pytest.raises(ValueError, match="3 sequences of 2 frames of tilt in the reference, found 4 of 2 frames"):
        flips.run(tiny.config(), workdir, given, str(workdir))
    assert len(flips.run(tiny.config(), workdir, given)) == 2 and shown[2:] == ["tilt"]  # its file changed
    assert flips.run(tiny.config(), workdir, given, str(workdir), ["gaussian_noise"]) == rows[:1]
    assert "| mFR | 100.0 |" in capsys.readouterr().out
    assert [row.perturbation for row in read_flips(workdir)] == ["gaussian_noise", "tilt"]  # this one is still measured
    np.save(given / "tilt.npy", PIXELS)
    flips.run(tiny.config(), workdir, given, perturbations=["gaussian_noise"])
    assert [row.perturbation for row in read_flips(workdir)] == ["gaussian_noise"] and len(shown) == 3


@pytest.mark.parametrize("command", [lambda *given: flips.run(*given, given[1]), exits.run])
def test_settings_of_eval_that_are_not_applied_are_refused(tmp_path, command):
    config = tiny.config()
    config.eval.enhance, config.eval.stored = "clahe", "DIR"
    with pytest.raises(SettingsError, match=r"enhance '', found 'clahe'; .*config\.eval\.stored '', found"):
        command(config, tmp_path / "none")


FRAMES = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16, 3)).astype(np.uint8)
SEQUENCES = Sequences("rotate", FRAMES.shape, FRAMES, (0, 0))


class FirstPixels(nnx.Module):
    """Its logits are the first seven levels of an image, times a parameter."""

    def __init__(self, factor):
        self.factor = nnx.Param(jnp.float32(factor))

    def __call__(self, images, train):
        return images.reshape(len(images), -1)[:, :7].astype(jnp.float32) * self.factor[...], {}


def network(factor):
    graphdef, params, statistics = nnx.split(FirstPixels(factor), nnx.Param, ...)
    return graphdef, TrainState(jnp.zeros((), int), params, statistics, None)


@pytest.mark.parametrize("batch_size", [7, 2])  # two sequences of three frames, and less than one
def test_the_five_best_classes_of_every_frame(batch_size):
    models = {("standard", 0): network(1), ("standard", 1): network(-1)}
    found = flips.best_classes(models, SEQUENCES, batch_size, meshes.data_mesh(1))
    logits = FRAMES.reshape(5, 3, -1)[..., :7].astype(int)
    for seed, sign in ((0, -1), (1, 1)):
        best = np.argsort(sign * logits, axis=-1, kind="stable")[..., :5]
        np.testing.assert_array_equal(found["standard", seed], best)


def test_a_network_that_diverged_is_not_called_steady():
    with pytest.raises(ValueError, match="images under rotate, found NaN"):
        flips.best_classes({("standard", 0): network(np.nan)}, SEQUENCES, 7, meshes.data_mesh(1))
