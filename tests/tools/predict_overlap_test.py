"""tools.predict_overlap on a study whose overlap is a function of the distance between the
corruptions' features.
"""

import json

import numpy as np
import pytest

from analysis.distances.files import Distance, write_centres, write_msd
from analysis.overlap.files import write_overlap
from tools import predict_overlap

NAMES = tuple(f"noc/c{k}" for k in range(9))


def study(path, noise, clean=None):
    """Corruptions in three groups on a plane; overlap falls with distance. `clean`: the clean
    images' place.
    """
    generator = np.random.default_rng(3)
    places = np.repeat([[0, 0], [10, 0], [0, 10]], 3, axis=0) + generator.normal(0, 1, (9, 2))
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    overlap = np.exp(-distance / 4) + noise * np.triu(generator.normal(0, 1, (9, 9)), 1)
    overlap = np.triu(overlap, 1) + np.triu(overlap, 1).T + np.eye(9)
    write_overlap(path / "overlap.csv", NAMES, np.maximum(overlap, 0))
    (path / "msd").mkdir()
    centres = {(name, "random"): v for name, v in zip(NAMES, places)} | ({} if clean is None else {("clean", 0): clean})
    write_centres(path / "msd" / "features.npz", centres)
    rows = [
        Distance(a, b, "random", distance[i, j] / 2, 0.0, distance[i, j], 0.0)
        for i, a in enumerate(NAMES)
        for j, b in enumerate(NAMES)
    ]
    write_msd(path / "msd" / "msd.csv", rows)


def test_distance_that_decides_the_overlap_predicts_the_benchmark(tmp_path, capsys):
    study(tmp_path, 0.0)
    result = predict_overlap.run(tmp_path / "overlap.csv", tmp_path / "msd", 0.3, resamples=50)
    assert json.loads((tmp_path / "msd" / "bridge.json").read_text())["corruptions"] == list(NAMES)
    for label in ("centre distance", "minimal sample distance"):
        found = result[label]
        assert found["spearman"] == pytest.approx(1) and found["pairs"] == 36
        groups = {int(name[-1]) // 3 for name in found["benchmarks"]["first"]}
        assert groups == {0, 1, 2} and len(found["benchmarks"]["first"]) == 3
        assert found["mean_overlap"] < found["random_mean"]
    assert "Spearman of nearness and overlap 1.00" in capsys.readouterr().out


def test_directions_are_used_where_the_clean_features_are_there(tmp_path, capsys):
    study(tmp_path, 0.0, clean=np.array([4.0, 4.0]))
    found = predict_overlap.run(tmp_path / "overlap.csv", tmp_path / "msd", 0.3, resamples=50)["direction"]
    assert found["spearman"] > 0.5  # seen from the middle the three groups lie in three directions
    assert {int(name[-1]) // 3 for name in found["benchmarks"]["first"]} == {0, 1, 2}
    (tmp_path / "old").mkdir()
    study(tmp_path / "old", 0.0)
    assert "direction" not in predict_overlap.run(
        tmp_path / "old" / "overlap.csv", tmp_path / "old" / "msd", 0.3, resamples=50
    )
    assert "no clean features" in capsys.readouterr().out


def test_without_a_relation_the_prediction_is_no_better_than_chance(tmp_path):
    study(tmp_path, 5.0)
    found = predict_overlap.run(tmp_path / "overlap.csv", tmp_path / "msd", 0.3, resamples=50)["centre distance"]
    assert abs(found["spearman"]) < 0.5


def test_features_of_other_corruptions_are_refused(tmp_path):
    study(tmp_path, 0.0)
    write_overlap(tmp_path / "overlap.csv", ("noc/x", *NAMES[1:]), np.eye(9))
    with pytest.raises(ValueError, match="noc/x"):
        predict_overlap.run(tmp_path / "overlap.csv", tmp_path / "msd", 0.3)
