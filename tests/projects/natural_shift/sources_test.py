"""Tables of models read from the testbed's file, from timm's and from our own counts."""

import dataclasses

import numpy as np
import pytest

from analysis.errors.reference import Conditions
from analysis.frames import CLEAN
from projects.natural_shift.sources import read_testbed, read_timm, read_workdirs, timm_files
from runtime import command
from tests.analysis.made_up import counted, write_answers
from tests.projects.natural_shift.tables import changed, made_up, write
from tests.refusing import refuses


@pytest.fixture
def testbed(tmp_path):
    fog = [f"imagenet-c.fog.{s}_{kind}" for s in range(1, 6) for kind in ("on-disk", "in-memory")]
    header = ["model", "val", "imagenet-r", "val-on-imagenet-r-classes", *fog]
    rows = [
        ["resnet50", 76.13, 36.173, 92.12, *range(10, 20)],
        ["resnet50_batch64", 70, 30, 90, *range(10, 20)],
        ["resnet50_augmix", 77.538, 41.04, "", *range(20, 30)],
        ["resnet50_subsample", 60, 20, 80, *[""] * 10],
    ]
    types = [["resnet50", "standard"], ["resnet50_batch64", "standard"], ["resnet50_augmix", "robust_intv"]]
    types.append(["resnet50_subsample", "more_data"])
    write(tmp_path / "types.csv", ["model", "type"], *types)
    return write(tmp_path / "top1.csv", header, *rows), tmp_path / "types.csv"


def test_the_testbeds_columns_get_our_names_and_lines_are_of_standard_models_without_other_data(testbed):
    table = read_testbed(*testbed)
    assert list(table.accuracy.index) == ["resnet50", "resnet50_batch64", "resnet50_augmix", "resnet50_subsample"]
    assert table.natural == ["imagenet_r"] and table.synthetic == ["imagenet_c/fog"]
    np.testing.assert_array_equal(table["imagenet_c/fog"], [14, 14, 24, np.nan])
    assert read_testbed(*testbed, kind="in-memory")["imagenet_c/fog"][0] == 15
    np.testing.assert_array_equal(table.shift("imagenet_r")[1], [92.12, 90, np.nan, 80])
    assert table.standard.tolist() == [True, False, False, False]
    assert table.shown.tolist() == [False, False, True, False]
    assert not read_testbed(testbed[0]).standard.any()


@pytest.mark.parametrize(
    "header, row, message",
    [
        (["model", "other"], ["m", 1], "columns val and imagenetv2"),
        (["model", "val", "imagenet-r"], ["m", "high", 10], "column val: expected numbers, found .*high"),
        (["model", "val"], ["m", 1, 2], "line 2: expected 2 fields"),
        (["model", "val"], ["m"], "line 2: expected 2 fields"),
        (["name", "val"], ["m", 1], r"expected lines with the columns model, found \['name', 'val'\]"),
        (["model", "val"], None, "expected lines with the columns model"),
        (["model", "val", "imagenet-r", "val"], ["m", 70, 30, 60], "expected every column once, found val again"),
        (
            ["model", "val"],
            ["m", 0.7],
            "column val: expected percent, found 0.7 at most, a fraction; multiply it by 100",
        ),
        (["model", "val", "imagenet-r"], ["m", 70, 0.4], "column imagenet-r: expected percent, found 0.4 at most"),
        (["model", "val"], ["m", 170], "column val: expected percent from 0 to 100, found 170"),
        (["model", "val"], ["m", "inf"], "column val: expected percent from 0 to 100, found inf"),
    ],
)
def test_a_broken_table_is_refused(tmp_path, header, row, message):
    with pytest.raises(ValueError, match=message):
        read_testbed(write(tmp_path / "a.csv", header, *([row] if row else [])))


def test_tables_that_do_not_belong_to_the_testbed_are_refused(testbed, tmp_path):
    path, types = testbed
    of_types, of_models = ["model", "type"], ["model", "val"]
    twice = write(tmp_path / "b.csv", of_types, ["resnet50", "standard"], ["resnet50", "robust_intv"])
    models_twice = write(tmp_path / "a.csv", of_models, ["m", 70], ["n", 60], ["m", 70])
    few = write(tmp_path / "few.csv", of_types, ["resnet50", "standard"])
    longer = write(tmp_path / "c.csv", of_models, ["m", 10], ["n", 1, 2])
    for given, error, message in (
        ((path, types, "disk"), ValueError, "kind of ImageNet-C of on-disk, in-memory, found 'disk'"),
        ((tmp_path / "none.csv",), FileNotFoundError, "expected a table at"),
        ((path, few), ValueError, "found none of resnet50_ba"),
        ((path, path), ValueError, "columns model, type, found"),
        ((longer,), ValueError, "line 3: expected 2 fields, found 3"),
        ((models_twice,), ValueError, r"a\.csv: expected every model once, found m again"),
        ((path, twice), ValueError, r"b\.csv: expected every model once, found resnet50 again"),
    ):
        with pytest.raises(error, match=message):
            read_testbed(*given)


def test_a_file_of_timm_in_fractions_or_with_a_line_twice_is_named(tmp_path, caplog):
    header = ["model", "img_size", "top1"]
    lines = [["a", 224, 70], ["b", 224, 60], ["a", 224, 71]]
    write(tmp_path / "results-imagenet.csv", header, *lines)
    path = write(tmp_path / "results-sketch.csv", header, ["a", 224, 0.3], ["b", 224, 0.2])
    refuses(lambda: read_timm(tmp_path), "0.3 at most")
    write(path, header, ["a", 224, 30], ["b", 224, 0])
    caplog.clear()
    assert read_timm(tmp_path).accuracy[CLEAN].to_dict() == {"a": 71, "b": 60}
    [record] = caplog.records
    assert "results-imagenet.csv: found a at 224 pixels 2 times, the last line counts" in record.getMessage()


def test_timms_files_are_joined_by_model_and_size(tmp_path):
    header = ["model", "img_size", "top1", "top1_err"]
    clean = [["resnet50.tv_in1k", 224, 76.156, 0], ["big", 384, 85, 0], ["big", 224, 83, 0]]
    write(tmp_path / "results-imagenet.csv", header, *clean)
    of_v2 = [["big", 384, 75, 0], ["resnet50.tv_in1k", 224, 63.19, 0], ["big", 224, 73, 0], ["other", 224, 1, 0]]
    write(tmp_path / "results-imagenetv2-matched-frequency.csv", header, *of_v2)
    write(tmp_path / "results-imagenet-r.csv", header, ["resnet50.tv_in1k", 224, 36.157, 0])
    write(tmp_path / "results-imagenet-r-clean.csv", header, ["resnet50.tv_in1k", 224, 92.15, 0])
    write(tmp_path / "results-imagenet-a.csv", header, ["big", 224, 12, 0])  # its clean file is missing
    table = read_timm(tmp_path, {"big": "standard"})
    assert list(table.accuracy.index) == ["resnet50.tv_in1k", "big"] and not table.synthetic
    assert table.natural == ["imagenet_v2", "imagenet_r"]
    np.testing.assert_array_equal(table[CLEAN], [76.156, 83])
    np.testing.assert_array_equal(table.shift("imagenet_v2")[0], [63.19, 73])
    np.testing.assert_array_equal(table.shift("imagenet_r")[1], [92.15, np.nan])
    assert table.standard.tolist() == [False, True]
    assert timm_files(tmp_path)[0].name == "results-imagenet.csv"
    assert len(timm_files(tmp_path)) == 5


def test_timm_without_natural_shifts_is_refused(tmp_path):
    refuses(lambda: read_timm(tmp_path), "results-imagenet.csv", kind=FileNotFoundError)
    write(tmp_path / "results-imagenet.csv", ["model", "img_size", "top1"], ["a", 224, 50])
    refuses(lambda: read_timm(tmp_path), "of natural shifts in", "none of imagenet_v2", kind=FileNotFoundError)


def evaluated(folder, rows, **said):
    """Writes a workdir with so many of 200 answers correct for each (model, seed, corruption, severity)."""
    return write_answers(folder, [counted(*row, 200) for row in rows], **said)


def test_models_of_workdirs_are_read_with_their_natural_shifts(tmp_path):
    first = evaluated(tmp_path / "first", [
        ("standard", 0, "clean", 0, 180), ("standard", 0, "imagenet_c/fog", 1, 160), ("standard", 0, "imagenet_c/fog", 5, 80),
        ("standard", 0, "natural/imagenet_r", 0, 60), ("standard", 0, "clean/imagenet_r", 0, 190),
        ("standard+bn=test", 0, "clean", 0, 200), ("standard+ensemble=0.1", 0, "clean", 0, 190),
    ])  # fmt: skip
    second = evaluated(tmp_path / "second", [
        ("noc/blur", 3, "clean", 0, 170), ("noc/blur", 3, "imagenet_c/fog", 1, 150), ("noc/blur", 3, "imagenet_c/fog", 5, 90),
        ("noc/blur", 3, "natural/imagenet_v2", 0, 100),
    ])  # fmt: skip
    table = read_workdirs([first, second])
    assert list(table.accuracy.index) == ["first/standard/0", "second/noc/blur/3"]
    np.testing.assert_allclose(table[CLEAN], [90, 85])
    np.testing.assert_allclose(table["imagenet_c/fog"], [60, 60])
    np.testing.assert_allclose(table.shift("imagenet_r"), [[30, np.nan], [95, np.nan]])
    np.testing.assert_allclose(table.shift("imagenet_v2")[1], [90, 85])  # accuracy on all classes
    assert table.synthetic == ["imagenet_c/fog"] and table.standard.tolist() == [True, False]
    assert read_workdirs([first, second], {"second/noc/blur/3": "standard"}).standard.tolist() == [False, True]


def test_a_benchmark_of_the_users_is_known_by_name_once_imported(tmp_path, monkeypatch, own_registry):
    (tmp_path / "benchmark_of_a_test.py").write_text(
        "import corruptions\ncorruptions.register_benchmark('benchmark_of_a_test', ('noc/hue', 'noc/border'))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    others = ("imagenet_c/fog", "noc/border", "noc/hue")
    rows = [("standard", 0, "clean", 0, 180), *(("standard", 0, c, 1, 9) for c in others)]
    path = evaluated(tmp_path / "work", rows, imports=["benchmark_of_a_test"])
    command.import_all(["benchmark_of_a_test"])
    assert read_workdirs([path]).members(["benchmark_of_a_test"]) == ("noc/hue", "noc/border")


def test_workdirs_that_do_not_fit_together_are_refused(tmp_path):
    clean, fog = ("standard", 0, "clean", 0, 180), ("standard", 0, "imagenet_c/fog")
    of = {"dataset": "cifar10", "classes": 10}
    first, other = (
        evaluated(tmp_path / "of10", [clean], **of),
        evaluated(tmp_path / "of100", [clean], **of | {"classes": 100}),
    )
    refuses(lambda: read_workdirs([first, other]), "the same conditions", "classes: 10, here 100")
    described = {"range": [0, 1]}, {"range": [0, 9]}
    of_ranges = [
        write_answers(tmp_path / f"range{n}", [counted(*clean, 200), counted(*fog, 1, 9, 200)],
                      Conditions("cifar10", 10, (32, 32, 3), "none", {"imagenet_c/fog": one}))
        for n, one in enumerate(described)
    ]  # fmt: skip
    refuses(lambda: read_workdirs(of_ranges), "range1 unlike", "here 0 to 9")
    first = evaluated(tmp_path / "first", [clean, (*fog, 1, 160)])
    second = evaluated(tmp_path / "second", [clean, (*fog, 2, 160)])
    for folders, message in (
        ([first, second], r"fog at the same severities .* 1 for first/.* and 2 for second/"),
        ([evaluated(tmp_path / "both", [clean, (*fog, 1, 160), (*fog, "random", 150)])], "found both, 1, random"),
        ([first, first], "folders of different names, found first, first"),
        ([evaluated(tmp_path / "x", [(*fog, 1, 160)])], "x: expected models evaluated on clean images, found none"),
    ):
        with pytest.raises(ValueError, match=message):
            read_workdirs(folders)


def test_a_table_names_what_it_lacks():
    table = made_up(6)
    assert table.shifts() == ("imagenet_v2", "imagenet_r") and table.shifts(["imagenet_r"]) == ("imagenet_r",)
    assert len(table.members()) == 15 and table.members(["imagenet_c"]) == table.members()
    assert table.members(["imagenet_c/fog"]) == ("imagenet_c/fog",)
    chosen = table.chosen(["model3", "model1"])
    assert list(chosen.accuracy.index) == ["model1", "model3"] and chosen[CLEAN][1] == table[CLEAN][3]
    assert chosen.standard.tolist() == table.standard[[1, 3]].tolist()
    without = dataclasses.replace(table, accuracy=table.accuracy[[CLEAN]])
    assert without.members() == ()
    repeated = table.accuracy.set_axis([*"aabcde"])
    for call, message in (
        (lambda: table.shifts(["imagenet_r", "imagenet_r"]), "every natural shift once, found imagenet_r again"),
        (lambda: table.shifts(["objectnet"]), "natural shifts, objectnet, found imagenet_r, imagenet_v2"),
        (without.shifts, "natural shifts, imagenet_v2, .*cinic10, found none; eval.py"),
        (lambda: table.members(["noc/rain"]), "corruptions, noc/rain, found imagenet_c/gaussian_noise"),
        (lambda: table.chosen(["resnet50"]), "models of the table, resnet50, found others"),
        (lambda: chosen.complete(["imagenet_r"], []), "at least 4 models .*, found 2 of 2"),
        (lambda: changed(table, clean=[50, 60, 70, 150.0, 0, 60]), "in percent for clean, found 0 to 150"),
        (lambda: dataclasses.replace(table, accuracy=repeated), "every model once, found a"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
