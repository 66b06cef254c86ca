"""tools.tables --table=balance: the published tables of models each trained with one corruption go in and come out."""

import json
import types

import numpy as np
import pytest

import corruptions
from analysis import answers
from analysis.errors.reference import FROST, Conditions, of_corruption
from analysis.tables import Count
from runtime.settings import SettingsError
from tests.analysis import published
from tests.analysis.made_up import write_answers
from tools import tables

SHAPE, NUMBER = (224, 224, 3), 20_000
PRINTED = {
    "imagenet_c": (published.TABLE7, published.ALEXNET_S4, published.TABLE2A, range(1, 6)),
    "imagenet_noc": (published.TABLE8, published.ALEXNET_NOC, published.TABLE2B, ("random",)),
}


@pytest.fixture
def workdir(tmp_path):
    """A study with the errors behind Tables 7 and 8, the same at each level."""
    counts, held = {}, {}
    for benchmark, (printed, alexnet, _, severities) in PRINTED.items():
        names = corruptions.names(benchmark)
        accuracy = published.accuracies(printed, alexnet, names)
        held |= {name: of_corruption(name, SHAPE) for name in names}
        for model, row in zip(("standard", *names), accuracy, strict=True):
            cells = [("clean", 0, row[0])]
            cells += [(name, level, a) for name, a in zip(names, row[1:], strict=True) for level in severities]
            for name, severity, a in cells:
                count = Count(model, 0, name, severity, round(NUMBER * a), NUMBER)
                counts[count.key] = count
    held[FROST]["frost"] = "original_photographs"
    found = Conditions("imagenet100", 100, SHAPE, "both sides 224, bilinear (Pillow)", held)
    return write_answers(tmp_path, counts.values(), found)


def balance(workdir, **changed):
    options = {
        "benchmarks": list(PRINTED), "measure": "relative_CE", "reference": "alexnet",
        "mismatch": "label", "out": None,
    }  # fmt: skip
    return tables.balance([workdir], types.SimpleNamespace(**options | changed))


def test_published_tables_come_out_as_printed(workdir, capsys):
    found = balance(workdir)
    for table, (printed, _, table2, _) in zip(found, PRINTED.values(), strict=True):
        values = table.values.to_numpy()
        np.testing.assert_allclose(values[:, 0] / 100, printed[:, 0], atol=1e-4)
        np.testing.assert_allclose(values[:, 1:-1], printed[:, 1:-1], atol=0.5)
        np.testing.assert_allclose(values[:, -1], printed[:, -1], atol=1)
        np.testing.assert_allclose(values[1:, -1], table2, atol=1)
    spreads = [table.spread for table in found]
    assert [(s.std, s.range, s.mean) for s in spreads] == [
        pytest.approx((12.1, 40, 76.0), abs=0.7),
        pytest.approx((3.7, 11, 83.2), abs=0.7),
    ]
    text = capsys.readouterr().out
    assert "| standard | 24.7 | 121 | 119 | 122 | 147 |" in text and "| hue | 26.1 | 83 | 139 |" in text
    assert "| imagenet_c | 15 | 7" in text and "| imagenet_noc | 8 | 8" in text
    assert "by AlexNet:ImageNet-C†" in text and "classes: 1000, here 100" in text
    content = json.loads((workdir / "balance.json").read_text())
    assert [len(table["rows"]) for table in content["tables"]] == [16, 9]


def test_without_labels_a_reference_of_other_conditions_is_refused(workdir):
    with pytest.raises(SettingsError, match="classes: 1000, here 100"):
        balance(workdir, mismatch="refuse")
    with pytest.raises(ValueError, match=r"a reference with errors of imagenet_c/gaussian_noise.*--mismatch=label"):
        balance(workdir, reference="", mismatch="refuse")
    [table] = balance(workdir, reference="", benchmarks=["imagenet_noc"], measure="mean_error")
    assert table.reference == "none" and table.values["noc/quantization"].iloc[1] < 30


def test_models_that_are_missing_or_not_evaluated_are_named(workdir):
    found = answers.read(workdir)
    counts, held = found.counts, Conditions.read(found.conditions)
    write_answers(workdir, [count for count in counts if count.model != "noc/hue"], held)
    with pytest.raises(ValueError, match=r"none of noc/hue; train them with overlap.py"):
        balance(workdir)
    part = [c for c in counts if (c.model, c.corruption) != ("noc/rain", "noc/blur")]
    write_answers(workdir, part, held)
    with pytest.raises(ValueError, match=r"on all of imagenet_noc, found it not so of noc/rain; run eval.py"):
        balance(workdir)
    with pytest.raises(ValueError, match=r"expected --benchmarks among .*, found imagenet_d"):
        balance(workdir, benchmarks=["imagenet_d"])
