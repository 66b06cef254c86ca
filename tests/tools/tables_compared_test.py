"""tools.tables compares: overlaps of studies, and distances in two feature extractors."""

import itertools
import json
import sys
import types

import numpy as np
import pytest
import scipy.stats

from analysis.overlap import overlap_matrix
from analysis.overlap.agreement import side_by_side
from analysis.overlap.study import read_study
from analysis.selection import select
from runtime import artifacts
from tests import processes
from tests.analysis.made_up import counted, write_answers
from tests.refusing import refuses
from tests.tools import report_studies
from tools import tables

NAMES = ("noc/border", "noc/hue", "noc/rain", "noc/shear", "noc/blur")
A, C, E = NAMES[0], NAMES[2], NAMES[4]


def study(path, seed, order, seconds, no_gain=None):
    """A study of five corruptions. Training with `no_gain` gains nothing."""
    harmed = order.index(no_gain) if no_gain else None
    bits = report_studies.write(path, order, number=2000, harmed=harmed, draw=seed)
    timing = {"training_seconds": {"standard|0": 100, f"{A}|0": seconds, f"extra{seed}|0": 7}}
    (path / "timing.json").write_text(json.dumps(timing))
    return overlap_matrix(bits.mean((0, -1)), names=order, number=2000)


def compare(*arguments):
    done = processes.run([sys.executable, "-m", "tools.tables", "--table=overlaps", *arguments])
    return done.returncode, done.stdout, done.stderr


def test_two_studies_in_different_order(tmp_path):
    first = study(tmp_path / "one", 1, NAMES, 60)
    second = study(tmp_path / "two", 2, NAMES[::-1], 20)
    code, out, err = compare(tmp_path / "one", tmp_path / "two", "--threshold=0.4")
    assert code == 0, err
    result = json.loads((tmp_path / "two" / "comparison.json").read_text())
    pairs = np.triu_indices(5, 1)
    x, y = first.unclipped[pairs], second.unclipped[::-1, ::-1][pairs]
    assert result["matrices"]["spearman"] == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    assert result["matrices"]["mean_difference"] == pytest.approx(np.abs(x - y).mean())
    assert result["training_seconds"] == [60, 20] and "3.0 times" in out
    assert [b["threshold"] for b in result["benchmarks"]].count(0.4) == 1 and "at threshold 0.4" in out


def test_a_study_has_the_seeds_of_its_settings(tmp_path):
    """A workdir keeps the answers of seeds that its settings no longer name."""
    bits = report_studies.write(tmp_path / "work", NAMES, seeds=(0, 1))
    for seeds in ((0,), (1,), (0, 1)):
        report_studies.records(tmp_path / "work", seeds)
        found = read_study(tmp_path / "work")
        expected = overlap_matrix(bits[list(seeds)].mean((0, -1)), names=NAMES, number=bits.shape[-1])
        np.testing.assert_allclose(found.measured.ordered(NAMES).unclipped, expected.unclipped)
        assert found.seeds == seeds
    report_studies.records(tmp_path / "work", (5,))
    refuses(lambda: read_study(tmp_path / "work"), "standard and 5 models")


def test_studies_of_other_corruptions_are_refused(tmp_path):
    study(tmp_path / "one", 1, NAMES, 1)
    study(tmp_path / "two", 1, NAMES[:4], 1)
    code, _, err = compare(tmp_path / "one", tmp_path / "two")
    assert code == 1 and "found only in one: noc/blur" in err and "Traceback" not in err
    code, _, err = compare(tmp_path / "one", tmp_path / "nothing")
    assert code == 1 and "nothing" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--reference=alexnet"],
            "expected --reference with --table=errors or --table=balance or --table=sets, found it "
            "with --table=overlaps",
        ),
        (["--table=errors", "--printed"], "expected --printed with --by=corruption, or without workdirs"),
    ],
)
def test_flags_that_a_table_does_not_use_are_refused(flags, message):
    code, _, err = compare("one", "two", *flags)
    assert code != 0 and message in err


def test_three_studies_are_compared_two_by_two_and_drawn_side_by_side(tmp_path, capsys):
    orders = {"resnet18": NAMES, "densenet121": NAMES[::-1], "wide_resnet50_2": NAMES}
    found = {name: study(tmp_path / name, seed, order, 1) for seed, (name, order) in enumerate(orders.items())}
    given = types.SimpleNamespace(threshold=0.4, out=str(tmp_path / "out"))
    content = tables.overlaps([tmp_path / name for name in orders], given)
    assert json.loads((tmp_path / "out" / "comparisons.json").read_text())["studies"] == list(orders)
    unclipped = {n: f.unclipped[::-1, ::-1] if n == "densenet121" else f.unclipped for n, f in found.items()}
    text, upper = capsys.readouterr().out, np.triu_indices(5, 1)
    assert [tuple(pair["of"]) for pair in content["pairs"]] == list(itertools.combinations(orders, 2))
    for pair in content["pairs"]:
        expected = scipy.stats.spearmanr(*(unclipped[name][upper] for name in pair["of"])).statistic
        assert pair["matrices"]["spearman"] == pytest.approx(expected)
        assert f"| {', '.join(pair['of'])} | {expected:.2f} (" in text
    for name, one in found.items():
        members = select(one.overlap, orders[name], 0.4, unclipped=one.unclipped).members
        assert set(content["benchmarks"][name]) == set(members)
    assert set(content["in_all"]) == set.intersection(*map(set, content["benchmarks"].values()))
    row = next(line for line in text.splitlines() if line.startswith(f"| {A} |"))
    means = [(unclipped[name].clip(0)[0, 1:]).mean() for name in orders]
    cells = [f"{mean:.2f}" for mean in means]
    bold = [A in content["benchmarks"][name] for name in orders]
    assert row == f"| {A} | {' | '.join(f'**{c}**' if b else c for c, b in zip(cells, bold, strict=True))} |"
    assert (tmp_path / "out" / "matrices.png").is_file() and (tmp_path / "out" / "matrices.pdf").is_file()
    drawn = {n: read_study(tmp_path / n).measured.ordered(NAMES).overlap for n in orders}
    figure = side_by_side(drawn, NAMES)
    for axes, name in zip(figure.axes, orders, strict=False):
        drawn = axes.collections[0].get_array().reshape(5, 5)
        expected = np.ma.masked_array(unclipped[name].clip(0), np.eye(5, dtype=bool))
        np.testing.assert_allclose(drawn, expected, atol=1e-12)
        assert axes.get_title() == name and np.ma.getmaskarray(drawn).sum() == 5


def test_an_undefined_corruption_is_left_out_of_all_benchmarks(tmp_path, capsys):
    for seed, name in enumerate(("one", "two", "three")):
        study(tmp_path / name, seed, NAMES, 1, no_gain=C if name == "three" else None)
    given = types.SimpleNamespace(threshold=0.4, out=None)
    content = tables.overlaps([tmp_path / name for name in ("one", "two", "three")], given)
    assert content["dropped"] == [C] and not any(C in members for members in content["benchmarks"].values())
    assert content["mean_overlap"]["three"][C] is None and f"| {C} |" in capsys.readouterr().out
    refuses(
        lambda: tables.overlaps([tmp_path / "one", tmp_path / "two", tmp_path / "one"], given), "every workdir once"
    )


SCHEMES = ("standard", "augmix", "autoaugment_cifar", "patch_gaussian")
CORRUPTIONS = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/snow")
WRONG = {"standard": 40, "augmix": 20, "autoaugment_cifar": 30, "patch_gaussian": 25}


def measured(folder, seed):
    """MSD and MMD [2, 1] of each scheme to each corruption, as tools.msd keeps them."""
    rng, found = np.random.default_rng(seed), {}
    for scheme in SCHEMES:
        arrays = {f"{name}|3": rng.uniform(1, 2, (2, 1)) for name in CORRUPTIONS}
        artifacts.write(folder / "schemes" / f"{scheme}.npz", arrays, {"model": str(seed), "scheme": scheme})
        found |= {(scheme, name): arrays[f"{name}|3"][:, 0] for name in CORRUPTIONS}
    return found


def test_ranks_and_correlations_of_two_networks(tmp_path, capsys):
    first, second = measured(tmp_path / "wrn", 1), measured(tmp_path / "vgg", 2)
    counts = [counted(scheme, 0, "clean", 0, 90, 100) for scheme in SCHEMES]
    counts += [counted(s, 0, name, 3, 100 - wrong, 100) for s, wrong in WRONG.items() for name in CORRUPTIONS]
    write_answers(tmp_path / "schemes", counts)
    given = types.SimpleNamespace(errors=str(tmp_path / "schemes"), out=None)
    found = tables.distances([tmp_path / "wrn", tmp_path / "vgg"], given)
    keys = list(first)
    x, y = ([of[key][0] for key in keys] for of in (first, second))
    assert found["msd"]["spearman"] == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    for name in CORRUPTIONS:
        rho = [scipy.stats.spearmanr([of[s, name][0] for s in WRONG], list(WRONG.values())) for of in (first, second)]
        assert found["correlation_with_error"][name] == pytest.approx([one.statistic for one in rho])
    assert f"{rho[0].statistic:+.2f}   {rho[1].statistic:+.2f}" in capsys.readouterr().out
    assert json.loads((tmp_path / "vgg" / "comparison.json").read_text())["mmd"]["schemes"] == sorted(SCHEMES)
    refuses(lambda: tables.distances([tmp_path / "wrn"], given), "expected two folders of tools.msd")
