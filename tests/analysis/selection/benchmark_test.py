"""select_noc.py as a user runs it."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.overlap.measured import read_overlap
from analysis.overlap.study import read_study
from analysis.selection import select
from analysis.selection.benchmark import select_benchmark, selection_text
from runtime import artifacts
from tests import processes
from tests.analysis import published
from tests.analysis.matrices import imagenet_c, select_from, write_overlap, write_pairs
from tests.analysis.published import FIGURE3, IMAGENET_C
from tests.pages import commands, section_of
from tests.refusing import refuses
from tests.tools import report_studies

VERDICTS = ("covered", "not covered", "not shown to be covered")


def command(*flags):
    return processes.run([sys.executable, processes.ROOT / "select_noc.py", *flags])


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "overlap.csv"
    write_overlap(path, IMAGENET_C, FIGURE3)
    return path


def test_command_prints_and_writes_the_published_selection(matrix, tmp_path):
    out = tmp_path / "new" / "chosen.json"
    done = command(f"--overlap={matrix}", "--threshold=0.2", f"--out={out}", "--sweep")
    assert done.returncode == 0, done.stderr
    winner = ["snow", "brightness", "contrast", "elastic_transform", "jpeg_compression"]
    lines = done.stdout.splitlines()
    assert lines[0] == "benchmark of 5 from 15 candidates, overlap <= 0.2"
    assert [line.split()[0] for line in lines[2:7]] == winner
    assert lines[7].split()[:2] == ["all", "0.054"]
    assert "10 set(s) of size 5; 0 more with the same mean overlap" in done.stdout
    assert "dropped (no defined overlap): none" in done.stdout
    assert any(line.split()[:3] == ["0.60", "10", "0.174"] for line in lines)
    found = json.loads(out.read_text())
    assert found["members"] == winner
    assert (found["threshold"], found["strict"]) == (0.2, False)
    assert found["mean_overlap"] == pytest.approx(0.054)
    assert found["number_of_sets"] == 10 and len(found["alternatives"]) == 9
    assert winner not in found["alternatives"]
    assert found["inputs"] == {matrix.name: hashlib.sha256(matrix.read_bytes()).hexdigest()}
    assert {"python", "numpy", "scipy"} <= set(found["versions"])
    assert len(found["sweep"]) == 21 and found["sweep"][4]["members"] == winner
    assert "at most the threshold" in found["rule"]


def test_long_form_breaks_ties_and_shows_pairs_near_the_threshold(tmp_path, capsys):
    found, path = imagenet_c(number=5000), tmp_path / "overlap.csv"
    write_overlap(path, IMAGENET_C, found.overlap)
    alone = select_from(path, 0.1)
    assert alone["mean_unclipped_overlap"] is None and alone["pairs_near_threshold"] is None
    write_pairs(tmp_path / "overlap_long.csv", found)
    both = select_from(path, 0.1, strict=True)
    assert both["mean_unclipped_overlap"] < 0 == both["mean_overlap"]
    assert len(both["inputs"]) == 2
    assert "below the threshold" in both["rule"]
    assert artifacts.read_record(tmp_path / "benchmark.json") == both
    wide = select_from(path, 0.3)
    close = {frozenset(item["pair"]) for item in wide["pairs_near_threshold"]}
    near = np.argwhere(abs(np.triu(found.unclipped, 1) - 0.3) <= 2 * found.se)
    pairs = [frozenset(IMAGENET_C[k] for k in pair) for pair in near]
    assert close == {pair for pair in pairs if pair <= set(wide["members"])} != set()
    assert "near the threshold: " in capsys.readouterr().out


def test_a_pair_with_a_meaningless_error_prints_no_number():
    """A gain near zero makes errors of hundreds: +- 271 beside a score from 0 to 1."""
    overlap = np.array([[1.0, 0.1], [0.1, 1.0]])
    pair = {"pair": ["a", "b"], "overlap": 0.1, "se": 271.2}
    selection = select(overlap, ("a", "b"), 0.1)
    text = selection_text(selection, ("a", "b"), overlap, [pair, pair | {"se": 0.25}])
    lines = [line for line in text.splitlines() if line.startswith("near the threshold")]
    assert lines == ["near the threshold: a / b weak", "near the threshold: a / b 0.100 +- 0.250"]


def test_long_form_of_another_study_is_refused(tmp_path):
    write_overlap(tmp_path / "overlap.csv", IMAGENET_C, FIGURE3)
    write_pairs(tmp_path / "overlap_long.csv", imagenet_c())
    refuses(lambda: select_from(tmp_path / "overlap.csv", 0.1), "the matrix beside it")


def test_dropped_candidates_are_reported(tmp_path, capsys):
    matrix = np.array([[1, 0, np.nan], [0, 1, np.nan], [np.nan, np.nan, np.nan]])
    write_overlap(tmp_path / "overlap.csv", ("a", "b", "c"), matrix)
    found = select_from(tmp_path / "overlap.csv", 0.1)
    assert found["members"] == ["a", "b"] and found["dropped"] == ["c"]
    assert "dropped (no defined overlap): c" in capsys.readouterr().out


def test_coverage_by_names_and_by_a_benchmark_file(tmp_path):
    path, measured = tmp_path / "overlap.csv", imagenet_c(number=5000)
    write_overlap(path, IMAGENET_C, measured.overlap)
    write_pairs(tmp_path / "overlap_long.csv", measured)
    page = section_of("docs/howto/studies.md", "Ask what a benchmark covers")
    script, *flags = next(commands(page))
    changes = {
        "--workdir=runs/overlap_cifar10": f"--overlap={path}",
        "noc/border,noc/hue": "gaussian_noise,shot_noise, impulse_noise",
    }
    for given, here in changes.items():
        flags = [flag.replace(given, here) for flag in flags]
    assert script == "select_noc.py"
    done = command(*flags)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.partition("coverage by a benchmark of 3")[2].splitlines()[2:14]
    verdicts = {row.split()[0]: row for row in rows}
    assert set(verdicts) == set(IMAGENET_C[3:]) and rows[0].split()[:2] == ["jpeg_compression", "0.602"]
    by_verdict = {end: {name for name, row in verdicts.items() if row.endswith(f"  {end}")} for end in VERDICTS}
    assert by_verdict["not covered"] == {"fog"} and "snow" in by_verdict["covered"]
    assert by_verdict["not shown to be covered"] == {"brightness", "contrast"}
    kept = json.loads((tmp_path / "coverage.json").read_text())
    assert kept["benchmark"] == list(IMAGENET_C[:3]) and set(kept["inputs"]) == {"overlap.csv", "overlap_long.csv"}
    assert kept["corruptions"]["fog"]["p_uncovered"] < 1e-9 and kept["corruptions"]["jpeg_compression"]["p"] < 1e-10
    assert f"written to {tmp_path / 'coverage.json'}" in done.stdout and "--out=FILE writes it" in done.stdout
    chosen = select_from(path, 0.2)
    for coverage in (str(tmp_path / "benchmark.json"), "fog"):
        select_from(path, 0.3, coverage=coverage, categories=True)
        assert artifacts.read_record(tmp_path / "benchmark.json") == chosen  # only its coverage was asked for
    assert json.loads((tmp_path / "coverage.json").read_text())["benchmark"] == ["fog"]
    select_from(path, 0.3, coverage="fog", out=tmp_path / "new" / "chosen.json")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["chosen.json", "coverage.json"]


def test_coverage_without_standard_errors_is_not_tested(matrix, capsys):
    select_from(matrix, 0.2, coverage="fog")
    found = json.loads(matrix.with_name("coverage.json").read_text())["corruptions"]
    assert {row["verdict"] for row in found.values()} == {"untested"}
    assert found["contrast"]["overlap"] == 0.49 and found["contrast"]["p"] is None
    assert "untested" in capsys.readouterr().out


def test_coverage_by_a_benchmark_of_ours(tmp_path):
    names = (*(f"noc/{name}" for name in published.NOC), "noc/obstruction")
    values = np.eye(9)
    values[8, 4] = values[4, 8] = 0.13
    write_overlap(tmp_path / "overlap.csv", names, values)
    select_from(tmp_path / "overlap.csv", 0.1, coverage="imagenet_noc")
    found = json.loads((tmp_path / "coverage.json").read_text())
    assert found["benchmark"] == list(names[:8])
    assert list(found["corruptions"]) == ["noc/obstruction"]
    assert found["corruptions"]["noc/obstruction"]["member"] == "noc/border"


def test_categories_and_random_benchmarks(matrix, tmp_path):
    out = tmp_path / "new" / "chosen.json"
    done = command(f"--overlap={matrix}", f"--out={out}", "--categories", "--nk=3,2,50", "--nk_unbalanced")
    assert done.returncode == 0, done.stderr
    assert "3 categories, mean correlation within them 0.596 (K = 2: 0.197, K = 3: 0.596)" in done.stdout
    assert "  1: gaussian_noise, shot_noise, impulse_noise, jpeg_compression" in done.stdout
    clusters = json.loads(out.read_text())["categories"]
    written = json.loads((out.parent / "benchmarks_3_2.json").read_text())
    assert json.loads(out.read_text())["nk_file"] == str(out.parent / "benchmarks_3_2.json")
    assert written["categories"] == clusters and sorted(map(len, clusters)) == [4, 5, 6]
    assert written["possible"] == 6 * 10 * 15
    assert len({tuple(b) for b in written["benchmarks"]}) == 50
    for benchmark in written["benchmarks"]:
        assert [sum(name in cluster for name in benchmark) for cluster in clusters] == [2, 2, 2]
    # 1, 2, 3 and 1, 1, 4 corruptions of the three categories are all there is; both number more than 200.
    for value, counts in (("0.8", [1, 2, 3]), ("1.4", [1, 1, 4])):
        for benchmark in written["unbalanced"].pop(value):
            assert sorted(sum(name in cluster for name in benchmark) for cluster in clusters) == counts
    assert written["unbalanced"] == {}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"coverage": "fog,fgo"}, r"found \['fgo'\]"),
        ({"coverage": "imagenet_c"}, "'imagenet_c/gaussian_noise'"),
        ({"coverage": "none.json"}, "none.json"),
        ({"coverage": "{here}/overlap.json"}, "expected a benchmark with a list of members"),
        ({"nk": "6,2"}, "expected --nk=n,k,N with three integers, found '6,2'"),
        ({"nk": "3,2,1000"}, "between 1 and the 900 that exist"),
        ({"nk_unbalanced": True}, "expected --nk=n,k,N with --nk_unbalanced"),
        ({"threshold": 1.5}, r"expected a threshold in \[0, 1\], found 1.5"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_written(matrix, request_, message):
    matrix.with_name("overlap.json").write_text("[1, 2]")
    if "coverage" in request_:
        request_ = {"coverage": request_["coverage"].format(here=matrix.parent)}
    with pytest.raises((ValueError, OSError), match=message):
        select_from(matrix, **{"threshold": 0.1} | request_)
    assert not {"benchmark.json", "coverage.json"} & {path.name for path in matrix.parent.iterdir()}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--overlap={here}/overlap.csv", "--coverage=fgo"], "found ['fgo']"),
        (["--overlap={here}/overlap.csv", "stray"], "found ['stray']"),
        (["--overlap={here}/none.csv"], "none.csv, found no file"),
        ([], "expected --workdir=DIR or --overlap=FILE"),
    ],
)
def test_a_bad_request_is_one_clear_message(matrix, flags, message):
    done = command(*(flag.format(here=matrix.parent) for flag in flags))
    assert done.returncode == 1 and message in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_nothing_of_it_needs_jax(matrix):
    code = (
        "import sys, pathlib, select_noc\nfrom tests.analysis.matrices import select_from\n"
        f"select_from(pathlib.Path({str(matrix)!r}), 0.2, categories=True, coverage='fog', nk='2,2,5')\n"
        "assert not {'jax', 'flax'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=processes.ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_workdir_is_selected_from_by_its_answers_alone(tmp_path):
    names = ("noc/border", "noc/hue", "noc/rain", "noc/shear")
    bits = report_studies.write(tmp_path / "work", names)
    for table in (tmp_path / "work").glob("*.csv"):
        table.unlink()
    done = command(f"--workdir={tmp_path / 'work'}", "--threshold=0.1", f"--out={tmp_path / 'out.json'}")
    assert done.returncode == 0, done.stderr
    known = overlap_matrix(bits.mean(-1), names=names)
    expected = select(known.overlap, names, 0.1, unclipped=known.unclipped)
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["members"] == list(expected.members)
    assert found["mean_unclipped_overlap"] == pytest.approx(
        expected.mean_unclipped, rel=1e-12
    )  # summed in another order
    assert found["inputs"] == {} and found["pairs_near_threshold"] is not None


def test_another_threshold_than_the_studys_writes_another_file(tmp_path):
    report_studies.write(tmp_path / "work", ("noc/border", "noc/hue", "noc/rain"), number=400)
    found = {}
    for flags in (("--threshold=0.1",), (), ("--threshold=0.5",), ("--strict",)):
        done = command(f"--workdir={tmp_path / 'work'}", *flags)
        assert done.returncode == 0, done.stderr
        found[flags] = sorted(path.name for path in (tmp_path / "work").glob("benchmark*.json"))
    assert found["--threshold=0.1",] == found[()] == ["benchmark.json"]
    assert found["--threshold=0.5",] == ["benchmark.json", "benchmark_0.5.json"]
    assert found["--strict",][-1] == "benchmark_0.5.json" and "benchmark_0.1_strict.json" in found["--strict",]
    assert json.loads((tmp_path / "work" / "benchmark.json").read_text())["threshold"] == 0.1


def test_a_weak_member_is_marked_wherever_it_stands_and_covers_nothing(tmp_path, capsys):
    names = ("noc/border", "noc/hue", "noc/rain", "noc/shear", "noc/blur")
    bits = report_studies.write(tmp_path / "work", names, number=800, weak=(2,))
    known = overlap_matrix(bits.mean(axis=(0, -1)), names=names, number=800)
    assert known.flags[2] == "weak"
    write_overlap(tmp_path / "overlap.csv", names, known.overlap)
    write_pairs(tmp_path / "overlap_long.csv", known)
    measured = read_study(tmp_path / "work").measured
    assert measured.weak == read_overlap(tmp_path / "overlap.csv").weak == ("noc/rain",)
    measured = measured._replace(weak=("noc/shear",))  # which is selected
    content = select_benchmark(measured, tmp_path / "work" / "benchmark.json", 0.1, sweep=True)
    assert "noc/shear" in content["members"] and content["weak"] == ["noc/shear"]
    text = capsys.readouterr().out
    (row,) = (line for line in text.splitlines() if line.startswith("noc/shear"))
    assert row.endswith("(weak)") and text.count("noc/shear") == text.count("noc/shear (weak)") + 1
    assert "too little" in text and "noc/hue (weak)" not in text
    select_benchmark(measured, tmp_path / "work" / "b.json", 0.1, coverage="noc/shear,noc/border", kept=True)
    covered = json.loads((tmp_path / "work" / "coverage.json").read_text())
    assert covered["weak"] == ["noc/shear"] and "weak members" in capsys.readouterr().out
    assert {row["member"] if isinstance(row, dict) else row[1] for row in covered["corruptions"].values()} <= {
        "noc/border",
        "",
    }
