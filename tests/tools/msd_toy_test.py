"""tools.msd --experiment=toy on a tiny network: distances of mixtures from the features it stores."""

import numpy as np
import pytest

import configs.msd
from evaluation.distances import features
from tests.training import tiny
from tools import msd


def settings(**toy):
    config = configs.msd.get_config()
    config.msd.update({"images": 8, "transforms": 10, "draws": 6, "chunk": 5})
    config.msd.toy.update({"fractions": (0.0, 0.5, 0.9, 1.0)} | toy)
    return config


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    config = tiny.config()
    config.dataset.train_limit = 10
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("toy") / "work", config)
    return folder, msd.toy(settings(), folder)


def test_mixtures_by_their_definition(measured):
    folder, rows = measured
    names = ("imagenet_c.motion_blur-3", "imagenet_c.impulse_noise-3")
    blur, noise = (np.load(folder / "toy" / "features" / f"{name}.npz")["features"] for name in names)
    centres = [np.load(folder / "toy" / "centres" / f"{name}.npz")["centre"][0] for name in names]
    expected = []
    for fraction, number in ((0.0, 0), (0.5, 5), (0.9, 9), (1.0, 10)):
        mixed = [*blur[:number], *noise[number:]]
        for name, centre in zip(("imagenet_c/motion_blur", "imagenet_c/impulse_noise"), centres):
            least = min(np.linalg.norm(one - centre) for one in mixed)
            expected.append((fraction, name, least, np.linalg.norm(np.mean(mixed, axis=0) - centre)))
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    np.testing.assert_allclose([row[2:] for row in rows], [row[2:] for row in expected], rtol=1e-5)


def test_msd_jumps_at_the_end_where_mmd_grows(measured):
    least, mean = np.array([row[2:] for row in measured[1] if row[1] == "imagenet_c/impulse_noise"]).T
    assert least[-1] > 2 * least[-2] and np.all(np.diff(mean) > 0)


def test_results_are_files_and_nothing_is_measured_again(measured, monkeypatch):
    folder, rows = measured
    assert (folder / "toy" / "toy.png").stat().st_size > 1000
    assert len((folder / "toy" / "toy.csv").read_text().splitlines()) == 1 + 8
    monkeypatch.setattr(features.Extractor, "stream", None)
    assert msd.toy(settings(), folder) == rows


@pytest.mark.parametrize(
    ("toy", "message"),
    [
        ({"second": "motion_blur"}, "expected two corruptions"),
        ({"severity": "2,3"}, "expected one severity"),
        ({"fractions": (0.0, 2.0)}, "expected fractions"),
    ],
)
def test_what_is_wrong_is_refused(measured, toy, message):
    with pytest.raises(ValueError, match=message):
        msd.toy(settings(**toy), measured[0])
