"""tools.cbar: the whole search (which network gives errors and which features, runs that are added, killed and
continued), and the selection of ten candidates as a user runs it.
"""

import dataclasses
import json
import sys

import numpy as np
import pytest

import configs.cbar_search
import corruptions
from analysis.cbar import scans
from evaluation import evaluate
from tests import processes
from tests.refusing import refuses
from tests.runtime.pair import ROOT, environment
from tools import cbar

IMAGES = 400


def settings(errors, features):
    config = configs.cbar_search.get_config("smoke")
    config.study.seeds, config.search.seeds = errors, features
    config.dataset.train_limit, config.dataset.test_limit = 160, 70  # as many other tests
    return config


@pytest.fixture
def without_networks(monkeypatch):
    """Training, answers and features made up of seeds; gives what was asked of them, and of the selection."""
    asked = {"trained": [], "features": [], "data": [], "selected": []}

    def train_in_parts(self, at_most):
        asked["trained"].append((self.trainings, tuple(self.seeds)))
        yield {("standard", seed): seed for seed in self.seeds}

    def answers(models, shown, conditions, workdir):
        """Errors of 2 + 3 k percent at level k of a candidate, 10 + 3 k of a reference, and the seed."""
        base = {condition: 2 if condition.corruption.startswith("cbar/") else 10 for condition in conditions}
        wrong = {condition: 4 * (base[condition] + 3 * int(condition.severity)) for condition in conditions}
        return {
            condition: {key: np.arange(IMAGES) >= wrong[condition] + 4 * key[1] for key in models}
            for condition in conditions
        }

    def centres(config, dataset, path, number, seed, conditions):
        asked["features"].append((number, seed))
        asked["data"].append(dataset)
        rng = np.random.default_rng(seed)
        return {
            (condition.corruption, condition.label): rng.normal(size=3).astype(np.float32) for condition in conditions
        }

    monkeypatch.setattr(cbar.study.Trainings, "train_in_parts", train_in_parts)
    monkeypatch.setattr(cbar, "evaluate_models", answers)
    monkeypatch.setattr(cbar, "_centres", centres)
    monkeypatch.setattr(cbar.selection, "select", lambda *given: asked["selected"].append(given) or ({}, ""))
    return asked


def test_each_run_has_the_errors_of_one_network_and_the_features_of_another(without_networks, tmp_path):
    cbar.search(settings((0, 3), (2, 1)), tmp_path)
    assert without_networks["trained"] == [(("standard",), (0, 2, 3, 1))]
    assert without_networks["features"] == [(0, 2), (1, 1)]
    assert len(set(map(id, without_networks["data"]))) == 1  # loaded once
    for number, (errors, features) in enumerate(((0, 2), (3, 1))):
        scan = scans.read_scan(tmp_path / "scans" / f"run{number}.npz")
        assert scan.candidates == corruptions.names("cbar_candidates")
        assert scan.references == corruptions.names("imagenet_c")
        expected = [2 + 3 * level + errors for level in range(1, 11)]
        np.testing.assert_allclose(scan.candidate_errors, np.tile(expected, (30, 1)))
        rng = np.random.default_rng(features)
        np.testing.assert_array_equal(scan.candidate_features[0, 0], rng.normal(size=3).astype(np.float32))
    ((paths, target, *_),) = without_networks["selected"]
    assert [path.name for path in paths] == ["run0.npz", "run1.npz"]
    assert target == pytest.approx(19 + 1.5)  # over ImageNet-C: 10 + 3 * 3, and the seeds' 0 and 3


@pytest.mark.parametrize(("errors", "features"), [((0, 1), (2,)), ((0, 1), (1, 2))])
def test_seeds_that_do_not_pair_are_refused_before_anything_is_written(errors, features, tmp_path):
    refuses(lambda: cbar.search(settings(errors, features), tmp_path / "work"), "and none in both")
    assert not (tmp_path / "work").exists()


def test_the_papers_sizes():
    cifar, imagenet = (configs.cbar_search.get_config(name) for name in ("cifar10", "imagenet"))
    assert (cifar.search.images, cifar.search.draws, len(cifar.study.seeds)) == (100, 100, 10)
    assert (imagenet.search.images, imagenet.search.draws, len(imagenet.study.seeds)) == (10_000, 0, 5)
    assert imagenet.model.name == "resnet50" and cifar.model.name == "wrn_40_2"


def kill_when(work, pattern, number):
    """Starts the command as a user does, and kills it once its workdir holds so many files."""
    config = ROOT / "configs" / "cbar_search.py"
    command = [sys.executable, "-m", "tools.cbar", f"--config={config}:smoke", f"--workdir={work}"]
    process = processes.Process(command, env=environment(1), output=work.parent / "output")
    process.kill_when(lambda: len(list(work.glob(pattern))) >= number)
    assert not (work / "cbar_benchmark.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(3000)  # some minutes of CPU time: a loaded machine takes many times as long
def test_the_smoke_search_killed_at_each_stage_ends_in_the_ten_of_an_undisturbed_one(tmp_path, monkeypatch):
    config = configs.cbar_search.get_config("smoke")
    content = cbar.search(config, tmp_path / "undisturbed")
    assert len(content["members"]) == 10 and len(content["runs"]) == 2
    work = tmp_path / "work"
    for pattern, number in (("models/*/*/final.json", 1), ("answers/*.npz", 30), ("features/run1/**/*.npz", 20)):
        kill_when(work, pattern, number)
    again = cbar.search(config, work)
    assert again["ranking"] == content["ranking"] and again["members"] == content["members"]
    monkeypatch.setattr(evaluate.correctness, "ask", lambda *given: pytest.fail("evaluated again"))
    monkeypatch.setattr(cbar.sampling, "mean_feature", lambda *given: pytest.fail("measured again"))
    assert cbar.search(config, work)["ranking"] == content["ranking"]


NAMES = tuple(f"cbar/c{k:02d}" for k in range(13))
REFERENCES = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/saturate")
FAR = NAMES[3:]  # the ten that lie far from the references


def make_scan(seed):
    rng = np.random.default_rng(seed)
    errors = np.linspace(12, 40, 10) + rng.normal(0, 2, (len(NAMES), 10))
    features = rng.normal(0, 0.1, (len(NAMES), 10, 6)).astype(np.float32)
    features[3:] += 2
    reference_errors = np.linspace(15, 40, 5) + rng.normal(0, 1, (3, 5))
    reference_features = rng.normal(0, 0.1, (3, 5, 6)).astype(np.float32)
    return scans.Scan(NAMES, errors, features, REFERENCES, reference_errors, reference_features)


@pytest.fixture(scope="module")
def folder_of_scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    for seed in range(2):
        scans.write_scan(folder / f"run{seed}.npz", make_scan(seed))
    return folder


def command(*flags):
    return processes.run([sys.executable, "-m", "tools.cbar", "--step=select", *flags])


def test_command_chooses_the_distant_corruptions_and_writes_them(folder_of_scans, tmp_path):
    out = tmp_path / "new" / "chosen.json"
    done = command(f"--scan={folder_of_scans}/run*.npz", "--target=26", f"--out={out}")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert set(found["members"]) == set(FAR)
    assert [row["name"] for row in found["ranking"]][:10] == list(found["members"])
    assert abs(found["error"] - 26) < 0.26 and found["target"] == 26
    for name, levels in found["members"].items():
        assert f"{name}  levels {', '.join(map(str, levels))}" in done.stdout
    # The errors of the chosen levels, from the run they were chosen in, average to the benchmark's.
    scan = scans.read_scan(found["severities_from"])
    chosen = [scan.candidate_errors[NAMES.index(n), k - 1] for n, levels in found["members"].items() for k in levels]
    assert len(chosen) == 50 and np.mean(chosen) == pytest.approx(found["error"])
    table = scans.group_table(scan)
    assert all(list(levels) in table.levels[NAMES.index(n)].tolist() for n, levels in found["members"].items())
    assert len(found["runs"]) == 2 and found["runs"][0]["references"] == list(REFERENCES[:2])
    assert len(found["inputs"]) == 2 and f"written to {out}" in done.stdout
    assert out.with_suffix(".png").stat().st_size > 1000


def test_a_seed_gives_one_result_beside_the_first_scan(folder_of_scans, tmp_path):
    paths = [tmp_path / "first" / "run0.npz", folder_of_scans / "run1.npz"]
    scans.write_scan(paths[0], make_scan(0))
    first, again = cbar.select(paths, 26), cbar.select(paths, 26, 0, tmp_path / "o.json")
    other = cbar.select(paths, 26, 1, tmp_path / "o.json")
    assert json.loads(paths[0].with_name("cbar_benchmark.json").read_text()) == first
    assert first | {"written": ""} == again | {"written": ""} and first["ranking"] != other["ranking"]


@pytest.mark.parametrize(
    ("scan", "target", "message"),
    [
        ("nowhere/run*.npz", 26, "expected scans at nowhere/run\\*.npz, found no file"),
        ("nowhere.npz", 26, "expected a scan at nowhere.npz, found no file"),
        ("{scans}/run0.npz", 90, "meet the target error"),
        ("{scans}/run0.npz", -1, "expected a target above 0"),
    ],
)
def test_what_is_wrong_is_refused(folder_of_scans, scan, target, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        cbar.select(cbar.listed([scan.format(scans=folder_of_scans)]), target)
    assert not (folder_of_scans / "cbar_benchmark.json").exists()


def test_missing_flags_are_named():
    done = command("--target=26")
    assert done.returncode != 0 and "expected --scan=FILE and --target=PERCENT" in done.stdout + done.stderr
    done = command("--scan=a.npz", "--target=26", "--workdir=runs/a")
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "expected --workdir with --step=search, found it with --step=select" in text
    done = command("--scan=a.npz", "--target=26", "--config.search.seed=3")
    assert done.returncode != 0 and "expected no --config.search.seed with --step=select" in done.stdout + done.stderr


def test_runs_of_different_candidates_are_refused(folder_of_scans, tmp_path):
    other = dataclasses.replace(make_scan(2), candidates=(*NAMES[:-1], "cbar/other"))
    scans.write_scan(tmp_path / "other.npz", other)
    refuses(
        lambda: cbar.select([folder_of_scans / "run0.npz", tmp_path / "other.npz"], 26, 0, tmp_path / "o.json"),
        "['cbar/c12', 'cbar/other']",
    )
