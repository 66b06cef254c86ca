"""Result files: exact round trips, strict reading, writing that never leaves half a file."""

import hashlib
import os

import numpy as np
import pytest

from analysis import accuracies, tables
from analysis.overlap import overlap_matrix
from analysis.overlap.files import read_overlap, read_overlap_long, unclipped_matrix, write_overlap, write_overlap_long
from analysis.tables import Count
from runtime import files
from tests.analysis import published
from tests.analysis.published import ALEXNET_NOC, NOC, TABLE8

COUNTS = [
    Count("standard", 0, "clean", 0, 900, 1000),
    Count("standard", 0, "noc/blur", "random", 450, 1000),
    Count("standard", 0, "imagenet_c/fog", 3, 0, 1000),
    Count("noc/blur", 1, "noc/blur", 0.25, 1000, 1000),
]
HEADER = "model,seed,corruption,severity,correct,total\n"


def test_counts_are_read_back_as_written(tmp_path):
    path = tmp_path / "new" / "counts.csv"
    tables.write_counts(path, COUNTS, comment="revision abc\nsecond line")
    lines = (
        HEADER + "standard,0,clean,0,900,1000\nstandard,0,noc/blur,random,450,1000\n"
        "standard,0,imagenet_c/fog,3,0,1000\nnoc/blur,1,noc/blur,0.25,1000,1000\n"
    )
    digest = hashlib.sha256(lines.removesuffix("\n").encode()).hexdigest()
    assert path.read_text() == f"# revision abc second line | sha256 of the lines below {digest}\n{lines}"
    assert tables.read_counts(path) == COUNTS
    assert [type(c.severity) for c in tables.read_counts(path)] == [int, str, int, float]


def test_counts_normalise_absent_severities_and_numpy_scalars(tmp_path):
    path = tmp_path / "counts.csv"
    tables.write_counts(path, [("a", np.int64(2), "clean", None, np.int32(1), 2), ("a", 2, "b", None, 1, 2)])
    assert tables.read_counts(path) == [Count("a", 2, "clean", 0, 1, 2), Count("a", 2, "b", "random", 1, 2)]


@pytest.mark.parametrize(
    ("line", "expected", "found"),
    [
        ("standard,0,clean,0,9\n", "6 non-empty fields", "standard,0,clean,0,9"),
        ("standard,0,clean,0,9,\n", "6 non-empty fields", "found 6"),
        ("standard,0,clean,0,9,1", "line end", "standard,0,clean,0,9,1"),
        ("standard,0,clean,0,nine,10\n", "integer correct", "'nine'"),
        ("standard,0,clean,0,9.0,10\n", "integer correct", "'9.0'"),
        ("standard,-1,clean,0,9,10\n", "integer seed", "'-1'"),
        ("standard,0,clean,0,11,10\n", "correct <= total", "correct 11, total 10"),
        ("standard,0,clean,0,0,0\n", "total >= 1", "total 0"),
        ("standard,0,blur,severe,1,10\n", "'random'", "'severe'"),
        ("standard,0,blur,-1,1,10\n", "'random'", "'-1'"),
        ("standard,0,clean,3,1,10\n", "severity 0 for clean", "3"),
        ("two words,0,blur,1,1,10\n", "model name", "two words"),
        ("standard,0,clean,0,1,10\nstandard,0,clean,0,2,10\n", "once", "standard,0,clean,0 again (first on line 2)"),
    ],
)
def test_damaged_counts_are_refused_with_file_and_line(tmp_path, line, expected, found):
    path = tmp_path / "counts.csv"
    path.write_text(HEADER + line)
    with pytest.raises(ValueError) as error:
        tables.read_counts(path)
    number = 2 + line.rstrip("\n").count("\n")
    for part in (str(path), f"line {number}", "expected", expected, found):
        assert part in str(error.value)


def test_every_truncation_of_a_table_is_refused_or_is_a_shorter_table(tmp_path):
    path = tmp_path / "counts.csv"
    tables.write_counts(path, COUNTS)
    text = path.read_text()
    ends = {i + 1 for i, c in enumerate(text) if c == "\n"}
    for length in range(len(text)):
        path.write_text(text[:length])
        if length in ends:
            assert tables.read_counts(path) == COUNTS[: text[:length].count("\n") - 1]
        else:
            with pytest.raises(ValueError, match=r"counts\.csv"):
                tables.read_counts(path)


def test_other_headers_and_absent_files_are_refused(tmp_path):
    path = tmp_path / "counts.csv"
    with pytest.raises(FileNotFoundError, match="found no file"):
        tables.read_counts(path)
    path.write_text("model,seed,corruption,correct,total\n")
    with pytest.raises(ValueError, match="expected the header model,seed,corruption,severity"):
        tables.read_counts(path)
    path.write_bytes(HEADER.encode() + b"\xff\xfe\n")
    with pytest.raises(ValueError, match="UTF-8"):
        tables.read_counts(path)


@pytest.mark.parametrize(
    "count",
    [("a,b", 0, "c", 1, 1, 2), ("a", 0, "c", 1, 3, 2), ("a", 0, "c", float("nan"), 1, 2), ("", 0, "c", 1, 1, 2)],
)
def test_impossible_counts_are_not_written(tmp_path, count):
    with pytest.raises(ValueError, match="expected"):
        tables.write_counts(tmp_path / "counts.csv", [count])
    with pytest.raises(ValueError, match="twice"):
        tables.write_counts(tmp_path / "counts.csv", [COUNTS[0], COUNTS[0]])
    assert not list(tmp_path.iterdir())


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "counts.csv"
    files.write_atomically(path, "old\n")

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomically(path, "new\n")
    assert path.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["counts.csv"]


def test_files_get_ordinary_permissions(tmp_path):
    files.write_atomically(tmp_path / "a", b"1")
    (tmp_path / "b").write_bytes(b"1")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_scores_by_hand(tmp_path):
    path = tmp_path / "scores.csv"
    accuracies.write_scores(path, COUNTS[:2], comment="x")
    lines = path.read_text().splitlines()
    assert lines[1] == ("model,seed,corruption,severity,correct,total,accuracy,accuracy_se,error,error_se,R,R_se")
    clean, blur = ([float(v) for v in line.split(",")[6:]] for line in lines[2:])
    np.testing.assert_allclose(clean, [0.9, (0.9 * 0.1 / 1000) ** 0.5, 0.1, (0.9 * 0.1 / 1000) ** 0.5, 1, 0])
    se = (0.45 * 0.55 / 1000) ** 0.5
    ratio_se = 0.5 * (0.55 / (1000 * 0.45) + 0.1 / (1000 * 0.9)) ** 0.5
    np.testing.assert_allclose(blur, [0.45, se, 0.55, se, 0.5, ratio_se])
    with pytest.raises(ValueError, match=r"clean row of model 'noc/blur', seed 1"):
        accuracies.score_rows(COUNTS)


def study_counts(seeds=(0,), number=1000):
    names = ("x/a", "x/b")
    return names, [
        Count(m, s, c, 0 if c == "clean" else "random", number - 100 * i - 10 * j - s, number)
        for s in seeds
        for i, m in enumerate(("standard", *names))
        for j, c in enumerate(("clean", *names))
    ]


def test_counts_become_an_array_of_accuracies():
    names, counts = study_counts(seeds=(3, 5))
    extra = [Count("standard", 3, "x/a", 5, 1, 1000), Count("x/other", 3, "x/a", "random", 1, 1000)]
    accuracy, number, seeds = accuracies.accuracies([*reversed(counts), *extra], names)
    expected = [[[(1000 - 100 * i - 10 * j - s) / 1000 for j in range(3)] for i in range(3)] for s in (3, 5)]
    np.testing.assert_allclose(accuracy, expected)
    assert (number, seeds) == (1000, (3, 5))


def test_incomplete_seeds_are_left_out_and_incomplete_studies_refused():
    names, counts = study_counts(seeds=(0, 1))
    partial = [c for c in counts if c.key != ("x/b", 1, "x/a", "random")]
    assert accuracies.accuracies(partial, names)[2] == (0,)
    broken = [c for c in partial if c.key != ("standard", 0, "clean", 0)]
    with pytest.raises(
        ValueError, match=r"seed 0 lacks 1, first model standard on clean; seed 1 lacks 1, .*x/b on x/a"
    ):
        accuracies.accuracies(broken, names)
    with pytest.raises(ValueError, match="found no row of the standard model"):
        accuracies.accuracies([], names)


def test_severities_are_pooled_as_a_mean_and_must_agree():
    names, counts = study_counts()
    levels = [c._replace(severity=1) for c in counts if c.corruption != "clean"]
    more = [c._replace(severity=2, correct=c.correct - 100) for c in levels]
    clean = [c for c in counts if c.corruption == "clean"]
    pooled, number, _ = accuracies.accuracies([*clean, *levels, *more], names, severity=None)
    single, _, _ = accuracies.accuracies([*clean, *levels], names, severity=1)
    np.testing.assert_allclose(pooled[:, :, 1:], single[:, :, 1:] - 0.05)
    np.testing.assert_allclose(pooled[:, :, 0], single[:, :, 0])
    assert number == 1000
    with pytest.raises(ValueError, match=r"expected severities \['1', '2'\] of x/b"):
        accuracies.accuracies([*clean, *levels, *more[:-1]], names, severity=None)


def measured_overlap():
    return overlap_matrix(published.accuracies(TABLE8, ALEXNET_NOC, NOC), names=NOC, number=5000)


def test_overlap_matrix_is_read_back_exactly(tmp_path):
    path, found = tmp_path / "overlap.csv", measured_overlap()
    matrix = found.overlap.copy()
    matrix[2, :] = matrix[:, 2] = np.nan
    write_overlap(path, NOC, matrix, comment="provenance")
    names, read = read_overlap(path)
    assert names == NOC
    np.testing.assert_array_equal(read, matrix)


def test_overlap_long_holds_what_the_matrix_does_not(tmp_path):
    path, found = tmp_path / "overlap_long.csv", measured_overlap()
    write_overlap_long(path, found)
    pairs = read_overlap_long(path)
    assert len(pairs) == 28
    np.testing.assert_allclose(unclipped_matrix(pairs, NOC), found.unclipped, atol=1e-15)
    first = pairs[0]
    assert (first.i, first.j) == NOC[:2]
    assert (first.O, first.se) == (found.overlap[0, 1], found.se[0, 1])
    assert (first.T_ij, first.T_ji) == (found.transfer[0, 1], found.transfer[1, 0])
    with pytest.raises(ValueError, match=r"7 missing, such as \['blur', 'hue'\]"):
        unclipped_matrix([p for p in pairs if "hue" not in (p.i, p.j)], NOC)
    path.write_text(path.read_text() + ",".join(map(str, pairs[3])) + "\n")
    with pytest.raises(ValueError, match="every pair of two names once"):
        read_overlap_long(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corruption,a,b\na,1,0.5\n", "square matrix, found 1 rows and 2 columns"),
        ("corruption,a,b\nb,1,0.5\na,0.5,1\n", "line 2: expected the row of 'a'"),
        ("corruption,a,b\na,1,0.5\nb,0.4,1\n", r"symmetric matrix, found 0.5 for \(a, b\) and 0.4"),
        ("corruption,a,b\na,1,0.5\nb,nan,1\n", "symmetric matrix"),
        ("corruption,a,b\na,1,0.5\nb,0.5,0\n", "on the diagonal, found 0.0 for b"),
        ("corruption,a,a\na,1,0.5\na,0.5,1\n", "every name once"),
        ("corruption,a,b\na,1,x\nb,x,1\n", "line 2: expected a finite number or nan, found 'x'"),
        ("corruption,a,b\na,1,inf\nb,inf,1\n", "found 'inf'"),
        ("corruption,a,b\na,1,0.5\nb,0.5", "line 3: expected a line end"),
        ("a,b\n1,0\n", "expected the header corruption"),
        ("# only a comment\n", "found an empty table"),
    ],
)
def test_damaged_matrices_are_refused(tmp_path, text, message):
    path = tmp_path / "overlap.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_overlap(path)
    assert str(path) in str(error.value)
