"""tools.msd on a tiny study: distances by their definition, resumed, extended, correlated, and refusing what is wrong."""

import contextlib
import json
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import configs.msd
import corruptions
import data
from analysis.distances.results import mean_distances, read_centres, read_distances
from evaluation import trained_models
from evaluation.distances import centres, features
from runtime import meshes, workdirs
from runtime.files import DamagedFileError
from tests import processes
from tests.analysis.made_up import counted, write_answers
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny
from tools import msd

IMAGES = 40  # all of them, so that the test knows which
LEVELS = (2, 4)
SETTINGS = {
    "images": IMAGES,
    "transforms": 30,
    "draws": 3,
    "halves": 4,
    "chunk": 6,
    "severity": "2,4",
    "schemes": ("standard", "imagenet_c/brightness", "augmix=posterize"),
    "corruptions": ("imagenet_c/brightness", "imagenet_c/gaussian_noise"),
}


def untrained(folder, images):
    """A workdir of an untrained network with so many training images."""
    config = tiny.config()
    config.dataset.train_limit = images
    return tiny.untrained_workdir(folder / "work", config)


def feature_of(workdir):
    """Images in [0, 1] -> penultimate features [N, D] of the network of a workdir."""
    ((_, folder),) = trained_models.list_models(workdir).items()
    graphdef, state = trained_models.read_model(folder, 10, 32, meshes.data_mesh(1))
    model = known.merge(graphdef, state)
    return jax.jit(lambda images: model(images, train=False)[1]["penultimate"])


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """(workdir, rows of distances)."""
    folder = untrained(tmp_path_factory.mktemp("msd"), IMAGES)
    return folder, msd.distances(settings(), folder)


def settings(**changed):
    config = configs.msd.get_config()
    config.msd.update(SETTINGS | changed)
    return config


def close(found, expected):
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    np.testing.assert_allclose([row[3:] for row in found], [row[3:] for row in expected], rtol=1e-3)


def copy(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "work")


def test_msd_of_unchanged_images_is_the_distance_of_mean_features(measured):
    """No augmentation and a deterministic corruption: both distances are the distance of two means over the images."""
    folder, rows = measured
    images = data.load("shapes", train_limit=IMAGES, test_limit=10).train.images
    features = feature_of(folder)

    def mean_feature(images):
        return np.asarray(features(images)).mean(0)

    centres = read_centres(folder / "msd" / "features.npz")
    assert set(centres) == {("clean", 0), *((name, level) for name in SETTINGS["corruptions"] for level in LEVELS)}
    np.testing.assert_allclose(centres["clean", 0], mean_feature(images), rtol=1e-3, atol=1e-4)
    for level in LEVELS:
        corrupted = corruptions.corrupt(jax.random.key(0), jnp.asarray(images), "imagenet_c/brightness", level)
        centre = mean_feature(corrupted)
        np.testing.assert_allclose(centres["imagenet_c/brightness", level], centre, rtol=1e-3, atol=1e-4)
        (row,) = [row for row in rows if row[:3] == ("standard", "imagenet_c/brightness", level)]
        expected = np.linalg.norm(mean_feature(images) - centre)
        assert row.msd == pytest.approx(expected, rel=1e-3) and row.mmd == pytest.approx(expected, rel=1e-3)
        assert 0 < row.msd_spread < row.msd


def test_a_corruption_as_scheme_meets_itself(measured):
    _, rows = measured
    of = {row[:3]: row for row in rows}
    assert len(of) == 3 * 2 * 2
    for level in LEVELS:  # thirty draws of five levels hold both
        own = of["imagenet_c/brightness", "imagenet_c/brightness", level]
        assert own.msd < 1e-3 * own.mmd


def test_the_table_is_what_is_returned_and_says_where_it_is_from(measured):
    folder, rows = measured
    table = pd.read_csv(folder / "msd" / "msd.csv")
    assert list(table.itertuples(index=False, name=None)) == list(map(tuple, rows))
    assert sorted(read_distances(folder / "msd")) == sorted(rows)
    record = json.loads((folder / "msd" / "provenance.json").read_text())
    origin = str(record["files"]["msd.csv"])
    assert "shapes, small_resnet, standard seed 0, 40 images, 30 transforms, 3 draws" in origin
    assert record["msd"]["transforms"] == 30 and "git_revision" in record["provenance"]


def test_the_same_command_measures_nothing_again_and_may_ask_for_more(measured, tmp_path, monkeypatch):
    trained, rows = measured
    folder = copy(trained, tmp_path)
    streams = []
    stream = features.Extractor.stream

    def counted(self, transform, key, number, **keywords):
        streams.append((transform.name, number))
        return stream(self, transform, key, number, **keywords)

    monkeypatch.setattr(features.Extractor, "stream", counted)
    assert msd.distances(settings(), folder) == rows and not streams
    # A study stopped between two schemes goes on with the second.
    (folder / "msd" / "schemes" / "augmix=posterize.npz").unlink()
    close(msd.distances(settings(chunk=30), folder), rows)
    assert streams == [("augmix=posterize", 30)]
    streams.clear()
    more = ("imagenet_c/brightness", "imagenet_c/gaussian_noise", "imagenet_c/contrast")
    found = msd.distances(settings(schemes=("standard",), corruptions=more, severity="2"), folder)
    assert streams == [("imagenet_c/contrast", 3), ("standard", 1)]
    assert [row[:3] for row in found] == [("standard", name, 2) for name in more]
    assert found[0] == rows[0]
    # Random severities of all levels, which are there, are not those of the levels that a benchmark selects.
    random = {"schemes": ("standard",), "severity": "random"}
    msd.distances(settings(corruptions=("cbar/sparkles",), **random), folder)
    refuses(
        lambda: msd.distances(settings(corruptions=("imagenet_c_bar",), **random), folder),
        "2, 3, 5, 6]",
        kind=workdirs.WorkdirError,
    )


def test_a_scheme_that_was_stopped_continues_where_it_was(measured, tmp_path, monkeypatch):
    """To the same bits, and with no transform shown again but those since it was saved."""
    trained, rows = measured
    folder = copy(trained, tmp_path)
    (folder / "msd" / "schemes" / "augmix=posterize.npz").unlink()
    shown, stream = [], features.Extractor.stream

    def stopped(self, transform, key, number, *, first=0, **keywords):
        for chunk in stream(self, transform, key, number, first=first, **keywords):
            shown.append(first)
            if len(shown) == 4:
                raise KeyboardInterrupt
            yield chunk

    monkeypatch.setattr(features.Extractor, "stream", stopped)
    monkeypatch.setattr(centres, "_SAVE_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        msd.distances(settings(), folder)
    assert [path.name for path in (folder / "msd" / "unfinished").iterdir()] == ["augmix=posterize.npz"]
    shown.append("continued")
    assert msd.distances(settings(), folder) == rows
    assert shown[5:] == [18, 18]  # transforms 18 to 29 in chunks of 6
    assert not list((folder / "msd" / "unfinished").iterdir())


@pytest.mark.parametrize("prefix", ["", "standard+bn="])  # trained with the scheme, or adapted to it by tools.adapt
def test_errors_of_the_schemes_are_correlated_with_distance(measured, tmp_path, capsys, prefix):
    trained, rows = measured
    folder = copy(trained, tmp_path)
    means = mean_distances(rows)
    # Made-up errors in the order of the distances under brightness, against it under noise.
    counts = []
    clean = [counted(prefix + scheme, 0, "clean", 0, 100, 100) for scheme in {s for s, _ in means}]
    for (scheme, name), (distance, _) in means.items():
        rank = sorted(d for (_, c), (d, _) in means.items() if c == name).index(distance)
        wrong = 10 + 10 * (rank if name == "imagenet_c/brightness" else -rank) + 20
        counts += [counted(prefix + scheme, 0, name, level, 100 - wrong, 100) for level in LEVELS]
    write_answers(tmp_path / "made_up", [*counts, *clean])
    msd.distances(settings(errors=str(tmp_path / "made_up")), folder)
    found = pd.read_csv(folder / "msd" / "correlations.csv")
    assert list(found[["corruption", "schemes", "msd"]].itertuples(index=False, name=None)) == [
        ("imagenet_c/brightness", 3, pytest.approx(1)),
        ("imagenet_c/gaussian_noise", 3, pytest.approx(-1)),
    ]
    assert (folder / "msd" / "correlations.png").stat().st_size > 1000
    assert "Spearman's rho with the error" in capsys.readouterr().out
    msd.distances(settings(schemes=("standard",)), folder)
    assert not [path.name for path in (folder / "msd").glob("correlations*")]  # they were of other schemes


@pytest.mark.slow
def test_the_command_gives_the_same_on_all_cores_and_refuses_what_is_wrong(measured):
    path, rows = measured

    def command(*flags):
        flags = [f"--workdir={path}", *(f"--config.msd.{flag}" for flag in flags)]
        return processes.run([sys.executable, "-m", "tools.msd", *flags])

    given = [f"{key}={value}" for key, value in SETTINGS.items() if key not in ("schemes", "chunk")]
    done = command(*given, "schemes=('augmix=posterize',)", "out=again")
    assert done.returncode == 0, done.stderr
    found = read_distances(path / "again")
    close(found, [row for row in rows if row.scheme == "augmix=posterize"])
    done = command("schemes=('augmx',)")
    assert done.returncode == 1 and "schemes: augmix," in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"transforms": 31}, workdirs.WorkdirError, "transforms: stored 30, asked 31"),
        ({"images": IMAGES + 1, "out": "b"}, ValueError, "expected at most 40 images, as many as .*, found 41"),
        ({"model": "noc/hue", "out": "b"}, ValueError, "among standard seed 0, found noc/hue seed 0"),
        ({"errors": "nowhere.csv"}, FileNotFoundError, "nowhere.csv"),
    ],
)
def test_what_is_wrong_is_refused(measured, changed, error, message):
    with pytest.raises(error, match=message):
        msd.distances(settings(**changed), measured[0])


def test_a_damaged_result_is_named(measured, tmp_path):
    folder = copy(measured[0], tmp_path)
    path = folder / "msd" / "centres" / "imagenet_c.brightness-2.npz"
    path.write_bytes(path.read_bytes()[:50])
    refuses(lambda: msd.distances(settings(), folder), "to measure it again", kind=DamagedFileError)


def test_what_another_network_saw_is_measured_again(measured, tmp_path, caplog, monkeypatch):
    folder = copy(measured[0], tmp_path)
    config = tiny.config()
    config.dataset.train_limit = IMAGES
    tiny.train_again(folder, config)
    few = settings(schemes=("standard",), corruptions=("imagenet_c/brightness",))
    monkeypatch.setattr(centres.log, "propagate", True)
    found = msd.distances(few, folder)
    assert caplog.text.count("holds results of another model: they are measured again") == 1
    shutil.rmtree(folder / "msd")
    assert str(found) == str(msd.distances(few, folder))  # spreads of no halves are NaN
    assert {row.msd for row in found}.isdisjoint(row.msd for row in measured[1])
    monkeypatch.setattr(features.Extractor, "stream", lambda *args, **kwargs: pytest.fail("measured again"))
    assert str(msd.distances(few, folder)) == str(found)


@pytest.mark.parametrize("experiment", msd.EXPERIMENTS)
def test_options_of_the_command_are_measured_and_others_of_the_model_stay(experiment, tmp_path, monkeypatch):
    config, trained, found = configs.msd.get_config(), tiny.config(), []
    config.train.corruption_options = {"noc/border": {"range": (2, 6)}}
    trained.train.corruption_options = {"noc/border": {"range": (1, 2)}, "noc/hue": {"range": (0, 1)}}

    class Enough(Exception):
        pass

    def by(trained, *given):
        found.append(trained.train.corruption_options.to_dict())
        raise Enough

    monkeypatch.setattr(trained_models, "open_workdir", lambda *given: contextlib.nullcontext(trained))
    monkeypatch.setattr(centres.Measured, "by", by)
    with pytest.raises(Enough):
        msd.EXPERIMENTS[experiment](config, tmp_path)
    assert found == [{"noc/border": {"range": (2, 6)}, "noc/hue": {"range": (0, 1)}}]
