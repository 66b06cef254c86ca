"""The table of compiled programs: what stands in a row, and how a stopped run continues."""

import importlib.metadata

import jax
import pytest

from benchmarks.compiled import __main__ as command
from benchmarks.compiled import picture, table
from runtime.chips import costs
from runtime.chips.targets import TARGETS

V5E = TARGETS["tpu_v5e"]


def cells(cycles=1_500_000, trips=0):
    found = costs.Costs(cycles, trips, True, 12, 3, 0, 819_000_000, {"gather": 0.7, "add|sub": 0.26, "mul": 0.04})
    return table.row(V5E, found, 2.25, 128 * 2**20, 98.5e9, 128, 1, 224**2)


def test_a_row_of_known_numbers():
    # 1.5 M cycles are 1 ms for 128 images; so are .819 GB, 21.3 times 128 images in and out; 98.5 GFLOP are half of
    # what 1 ms gives
    numbers = ["2.2", "1.00", "12", "0", "3", "0", "21.3", "128,000", "128,000", "50.0 %"]
    assert cells() == [*numbers, "gather 70 %; add/sub 26 %"]


def test_what_falls_short_is_listed(tmp_path):
    rows = {
        "fast": cells(),
        "slow": cells(cycles=150_000_000, trips=65),
        "large": table.failed(ValueError("no | room")),
    }
    path = tmp_path / "table.md"
    table.write(path, "T", "make it", V5E, rows, table.BARS["tpu_v5e", 224, 128])
    text = path.read_text()
    assert "1 of 2 keep all of: images/s by the model >= 5,000" in text
    assert "Median of images/s by the model: 64,640 (wanted: images/s by the model >= 100,000)" in text
    assert "- slow: images/s by the model 1,280, loop trips 65\n" in text and "- fast" not in text
    assert table.read(path, "T") == rows
    assert table.read(path, "of another compiler") == {}
    path.write_text(text.replace(" | 21.3 |", " |"))
    assert list(table.read(path, "T")) == ["large"]  # of other columns


def test_where_nothing_compiles_there_is_no_summary(tmp_path):
    rows = {"large": table.failed(ValueError("no room"))}
    table.write(tmp_path / "table.md", "T", "make it", V5E, rows, table.BARS["h200", 224, 256])
    assert table.read(tmp_path / "table.md", "T") == rows


def test_a_table_is_replaced_by_none_of_another_batch_or_of_a_few_names(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "measure", lambda *args: cells())
    monkeypatch.setattr(command.programs, "names", lambda kind, machines: ("first", "second"))

    def run(version, *flags):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
        monkeypatch.setattr("sys.argv", ["compiled", "--target=tpu_v5e", *flags])
        command.main()

    run("1")
    run("1", "--batch=64")
    standard, small = (tmp_path / f"compiled_tpu_v5e_corruptions_224{end}.md" for end in ("", "_batch64"))
    assert "keep all of" in standard.read_text() and "keep all of" not in small.read_text()
    before = standard.read_text()
    with pytest.raises(SystemExit):
        run("2", "--names", "first")
    try:
        jax.config.update("jax_optimization_level", "O1")
        run("1")
    finally:
        jax.config.update("jax_optimization_level", "UNKNOWN")
    quick = (tmp_path / "compiled_tpu_v5e_corruptions_224_O1.md").read_text()
    assert ", optimization level O1," in quick.splitlines()[0] and "`JAX_OPTIMIZATION_LEVEL=O1 python -m" in quick
    assert standard.read_text() == before


def test_a_stopped_run_continues_and_named_programs_are_compiled_anew(tmp_path, monkeypatch):
    asked = []

    def measure(target, kind, name, size, batch):
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return cells()

    out = tmp_path / "table.md"
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command.programs, "names", lambda kind, machines: ("first", "second", "third"))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1")

    def run(*flags):
        asked.clear()
        monkeypatch.setattr("sys.argv", ["compiled", "--target=tpu_v5e", f"--out={out}", *flags])
        command.main()
        return list(asked)

    with pytest.raises(KeyboardInterrupt):
        run()
    monkeypatch.setattr(command, "measure", lambda target, kind, name, size, batch: asked.append(name) or cells())
    assert run() == ["second", "third"]
    assert run("--names", "second") == ["second"]
    assert run() == []
    assert [line.split(" | ")[0] for line in out.read_text().splitlines() if " 128,000 | " in line] == [
        "| first", "| second", "| third"
    ]  # fmt: skip


def test_a_missing_compiler_is_named_with_its_remedy(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SystemExit, match=r"expected libtpu.*pip install -e '\.\[study,compile_tpu\]'"):
        V5E.compiler()


def test_values_of_a_column_are_read_back(tmp_path):
    rows = {"fast": cells(), "large": table.failed(ValueError("no room"))}
    table.write(tmp_path / "table.md", "T", "make it", V5E, rows, None)
    assert picture.numbers(tmp_path / "table.md", "traffic") == {"fast": 21.3}
    assert picture.numbers(tmp_path / "table.md", table.RATE) == {"fast": 128_000}
