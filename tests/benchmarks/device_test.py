"""A device measures itself: order, time, runs that are cut, devices that are too small, the page, the pack."""

import json
import os
import pathlib
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import corruptions
from benchmarks import timing
from benchmarks.device import __main__ as command
from benchmarks.device import contract, pack, page, pixels, works
from tests import compiling, processes
from tests.refusing import refuses

IDENTITY = {"device": "NVIDIA H200", "devices": 1, "platform": "gpu", "revision": "a" * 40}
PIECE = {"images_per_second": 2e5, "compile_seconds": 2.0, "batch": 256, "dtype": "uint8", "written": "2026-01-02"}


@pytest.fixture
def record(tmp_path):
    return command.Record(tmp_path, IDENTITY)


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def test_a_stopped_run_continues_to_the_same_json(tmp_path, monkeypatch, caplog):
    measured = []

    def run(piece, data_dir):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(piece)
        return {"images_per_second": len(measured)}

    def main(minutes):
        flags = {"out": str(tmp_path), "minutes": minutes, "scale": "smoke", "data_dir": ""}
        monkeypatch.setattr(command.command, "given", lambda argv, required: type("Flags", (), flags))
        caplog.clear()
        command.main([])
        [path] = tmp_path.iterdir()
        return read(path)

    for name in ("use_all_cores", "enable_compilation_cache"):
        monkeypatch.setattr(command.meshes, name, lambda: None)
    monkeypatch.setattr(works, "run", run)
    with caplog.at_level("INFO"):
        with pytest.raises(KeyboardInterrupt):
            main(20)
        cut = main(0)["pieces"]
        assert len(cut) == 2 and "no time left for the others; the same command continues" in caplog.text
        measured.insert(0, None)
        content = main(20)
    assert "13 of 13 pieces; all are measured" in caplog.text
    assert list(content["pieces"]) == list(contract.pieces(contract.scale("smoke"), tuple(pixels.stored())[:2]))
    assert {name: content["pieces"][name] for name in cut} == cut and content["failed"] == {}
    assert len(measured) == 1 + len(content["pieces"])  # none is measured twice


@pytest.mark.slow
def test_a_killed_run_continues_to_the_same_json(tmp_path):
    """Killed behind its second piece or later: the next run measures the others and leaves the finished ones alone."""
    run = [sys.executable, "-m", "benchmarks.device", "--scale=smoke", f"--out={tmp_path}"]
    environment = compiling.environment()
    process = processes.Process([*run, "--minutes=20"], env=environment)
    process.kill_when(lambda: sum(len(read(path)["pieces"]) for path in tmp_path.glob("*.json")) >= 2)
    [path] = tmp_path.glob("*.json")
    cut = read(path)["pieces"]
    nothing = processes.run([*run, "--minutes=0"], env=environment)
    assert nothing.returncode == 0 and "no time left for the others; the same command continues" in nothing.stderr
    assert read(path)["pieces"] == cut and len(cut) < 13
    done = processes.run([*run, "--minutes=20"], env=environment)
    assert done.returncode == 0 and "13 of 13 pieces; all are measured" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == [path]
    content = read(path)
    assert list(content["pieces"]) == list(contract.pieces(contract.scale("smoke"), tuple(pixels.stored())[:2]))
    assert {name: content["pieces"][name] for name in cut} == cut and content["failed"] == {}
    assert all(p.get("images_per_second", 1) > 0 for p in content["pieces"].values())


def test_parts_share_the_time_and_no_piece_begins_without_its_seconds(record, monkeypatch):
    now, order = [0.0], []
    monkeypatch.setattr(command.time, "monotonic", lambda: now[0])

    def run(piece, data_dir):
        now[0] += 10
        order.append(piece["name"])
        return {"name": piece["name"]}

    monkeypatch.setattr(works, "run", run)
    parts = dict.fromkeys(contract.PARTS, 5)
    pieces = {f"{part}/{i}": {"name": f"{part}/{i}"} for part in parts for i in range(5)}
    sizes = contract.scale("smoke")._replace(needs=dict.fromkeys(parts, 5) | {"training": 1000})
    command.measure(record, pieces, sizes, 104)
    corrupted, shown = ([f"{part}/{i}" for i in range(4)] for part in ("corruptions", "evaluation"))
    assert order == [*corrupted, *shown, "cifar10/0", "pixels/0"]
    command.measure(record, pieces, sizes, now[0] + 1000)
    rest = [f"{part}/{i}" for part in ("cifar10", "pixels") for i in range(1, 5)]
    assert order[10:] == ["corruptions/4", "evaluation/4", *rest]
    assert len(read(record.path)["pieces"]) == 20


def test_a_piece_that_fails_is_noted_and_tried_again_and_an_interrupted_one_leaves_the_finished(record, monkeypatch):
    answers = [TypeError("no such thing\nat all"), {"images_per_second": 1}, KeyboardInterrupt()]

    def run(piece, data_dir):
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def measure(*names):
        command.measure(
            record, {f"pixels/{name}": {} for name in names}, contract.scale("smoke"), time.monotonic() + 60
        )

    monkeypatch.setattr(works, "run", run)
    for failed in ({"pixels/a": "TypeError: no such thing"}, {}):
        measure("a")
        assert read(record.path)["failed"] == failed
    with pytest.raises(KeyboardInterrupt):
        measure("a", "b", "c")
    assert list(read(record.path)["pieces"]) == ["pixels/a"]


def test_a_batch_that_does_not_fit_is_halved_and_the_record_says_so(monkeypatch):
    def corruption(name, batch):
        if batch > 100:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate")
        if name == "bad":
            raise jax.errors.JaxRuntimeError("INTERNAL: no")
        return {"images_per_second": 3}

    monkeypatch.setitem(works.WORKS, "corruption", corruption)
    measured = works.run({"work": "corruption", "name": "x", "batch": 256}, "")
    assert measured == {"name": "x", "batch": 64, "batch_of_contract": 256, "images_per_second": 3}
    refuses(
        lambda: works.run({"work": "corruption", "name": "bad", "batch": 64}, ""),
        "INTERNAL",
        kind=jax.errors.JaxRuntimeError,
    )


@pytest.mark.parametrize("name, dtype", [("imagenet_c/contrast", "uint8"), ("noc/brightness", "float32")])
def test_an_accelerator_corrupts_inside_of_a_jit_with_calls_back_to_back(name, dtype, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    measured = works.corruption(name, 16, 4, dtype)
    assert measured["calls"] == 8 and measured["memory_bytes"] > 4 * 16 * 16 * 3
    rate = 8 * 4 / measured["seconds"][1]
    assert measured["images_per_second"] == pytest.approx(rate) and measured["compile_seconds"] > 0


def test_results_of_another_revision_stay_and_are_named(record, tmp_path, caplog):
    record.add("pixels/a", {"by_one": 0})
    assert command.Record(tmp_path, IDENTITY).finished("pixels/a")
    before, other = record.path.read_bytes(), IDENTITY | {"revision": "b" * 40}
    with caplog.at_level("INFO"):
        second = command.Record(tmp_path, other)
    assert f"holds results of another revision ({'a' * 40}); they stay" in caplog.text
    assert second.path != record.path and not second.finished("pixels/a")
    second.add("pixels/b", {"by_one": 0})
    assert record.path.read_bytes() == before and command.Record(tmp_path, other).finished("pixels/b")


def test_scales_have_their_batches_and_every_corruption():
    large, small = contract.scale("accelerator", 30e9), contract.scale("accelerator", 12e9)
    assert [row[:3] for row in large.corruptions] == [(224, "uint8", 256), (32, "uint8", 1024), (256, "float32", 32)]
    assert small.corruptions[0][:3] == (224, "uint8", 128)
    names = large.corruptions[0][3]
    assert names[:15] == corruptions.names("imagenet_c") and set(names) == set(corruptions.names())
    parts = [list(contract.PARTS).index(name.split("/")[0]) for name in contract.pieces(large, ("noc/hue",))]
    assert parts == sorted(parts)
    assert contract.scale("cpu").reduced and not large.reduced


def test_pixels_are_those_of_the_cpu_and_a_wrong_one_is_seen(monkeypatch):
    stored = pixels.stored()
    assert sum(map(len, stored.values())) == pixels.CASES and set(stored) <= set(corruptions.names())
    for name in ("imagenet_c/fog", "noc/hue", "cbar/lines"):
        found = pixels.compare(name)  # here programs are compiled without most optimisations, and round otherwise
        assert found["cases"] >= 2 and found["by_one"] < 1e-3 * found["values"] and found["by_more"] == 0
    corrupt = corruptions.corrupt
    monkeypatch.setattr(corruptions, "corrupt", lambda *args, **rest: corrupt(*args, **rest) ^ np.uint8(1))
    wrong = [pixels.compare("noc/hue")[key] for key in ("by_one", "by_more", "values")]
    assert wrong[0] > 0.99 * wrong[2] and not pixels.within(*wrong)
    assert pixels.within(40, 0, 400_000) and not pixels.within(41, 0, 400_000) and not pixels.within(0, 401, 400_000)


def test_repetitions_are_twenty_or_a_second_behind_a_warm_up(monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def work(seconds):
        def call(turn):
            calls.append(turn)
            now[0] += 5 if len(calls) == 1 else seconds
            return np.zeros(())

        return call

    for seconds, repetitions in ((0.001, 20), (0.125, 8), (7, 3)):
        calls.clear()
        found = timing.measure({"": work(seconds)})[""]
        assert len(found.wall) == repetitions == len(calls) - 1
        measured = found.median.wall, found.compiling.wall
        assert measured == pytest.approx((seconds, max(0, 5 - seconds)))
    quartiles = timing.Times(timing.Spent(9, 9), np.arange(1.0, 6.0), np.ones(5)).record(10)
    assert quartiles["seconds"] == [2, 3, 4] and quartiles["images_per_second"] == pytest.approx(10 / 3)


def test_the_page_is_rendered_from_the_jsons():
    written = (processes.ROOT / "docs" / "devices.md").read_text()
    assert written == page.page(page.read(page.RESULTS / "devices")), "python -m benchmarks.device.page writes it"


def test_the_page_has_a_column_for_each_device_and_the_ratio_to_the_compiler():
    limits = {"driver_version": "580.1", "clocks.max.sm": "1980 MHz"}
    limits |= dict.fromkeys(("power.limit", "power.max_limit"), "700 W")
    identity = IDENTITY | {"cores": 16, "driver": "", "versions": {"jax": "1", "python": "3.12"}, "reduced": []}
    network = PIECE | {"batch": 128, "dtype": "bfloat16", "share_of_peak": 0.314}
    gpu = {"corruptions/224_uint8/imagenet_c/fog": PIECE, "evaluation/resnet50:224": network}
    gpu |= {"training/resnet50:224": network}
    gpu |= {"training/resnet50:224:corrupted": network | {"images_per_second": 1234.0}}
    trained = {"variant": "gpu", "seconds": 9.0, "seconds_later": 4.0, "written": "2026"}
    gpu |= {f"cifar10/{i}": trained | {"accuracy": accuracy} for i, accuracy in enumerate((0.94, 0.95))}
    same = {"cases": 2, "values": 4096, "by_one": 1, "by_more": 0, "largest": 1, "written": "2026"}
    gpu["pixels/noc/hue"] = same | {"name": "noc/hue"}
    cpu = {"corruptions/224_uint8/imagenet_c/fog": PIECE | {"images_per_second": 55.5, "batch": 16}}
    smaller = identity | {"platform": "cpu", "device": "A CPU", "reduced": ["less"]}
    whole = {"identity": identity, "pieces": gpu, "failed": {"pixels/x": "E: f"}, "limits": limits}
    text = page.page([{"identity": smaller, "pieces": cpu, "failed": {}}, whole])
    model = page.model_rates("NVIDIA H200", "corruptions", "224x224, batch 256", page.RESULTS)["imagenet_c/fog"]
    assert f"| imagenet_c/fog | 55.5 | 2.0 | 200,000 | {200_000 / model:.2f} | 2.0 |" in text
    assert "A CPU, 16 cores: of the model" not in text and "- A CPU, 16 cores measured less: less." in text
    trained = page.model_rates("NVIDIA H200", "training", "Training", page.RESULTS)["resnet50:224"]
    assert f"| resnet50:224 | 128 bfloat16 | 200,000 | {200_000 / trained:.2f} | 31 % |" in text
    assert "| resnet50:224:corrupted | 128 bfloat16 | 1,234 | - | 31 % |" in text
    assert "94.50 % ± 0.50 | 9.0 | 4.0 |" in text and "noc/hue, by 1 | **no** |" in text
    assert "- NVIDIA H200, `pixels/x` failed: E: f" in text and "580.1 | 700 W of 700 W, 1980 MHz" in text
    assert "not yet measured" not in text
    assert page.model_rates("Radeon", "corruptions", "224x224, batch 256", page.RESULTS) == {}


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """Packs a folder of its own with a stand-in for the wheels: the function that packs, and what it printed."""
    (tmp_path / "tfds" / "cifar10" / "3.0.2").mkdir(parents=True)
    (tmp_path / "tfds" / "cifar10" / "3.0.2" / "data").write_text("images")
    monkeypatch.setattr(pack, "wheels", lambda folder: None)
    flags = type("Flags", (), {"tfds": str(tmp_path / "tfds"), "out": str(tmp_path / "pack")})
    monkeypatch.setattr(pack.command, "given", lambda argv, required: flags)
    return tmp_path / "pack", flags


def test_the_pack_is_complete_and_bounded(packed, capsys, monkeypatch):
    folder, flags = packed
    pack.main([])
    assert capsys.readouterr().out == f"bash {folder}/run.sh --minutes=8 --out=runs/device\n"
    for python, message in (("false", "expected Python 3.12, found"), ("true", "expected --out=DIR")):
        run, environment = ["bash", folder / "run.sh"], os.environ | {"PYTHON": python}
        done = subprocess.run(run, env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and message in done.stdout  # the packed command names what the machine lacks
    [archive] = folder.glob("checkout-*.tar.gz")
    names = subprocess.run(["tar", "-tzf", archive], capture_output=True, text=True, check=True).stdout.split()
    assert {"REVISION", "train.py", "benchmarks/timing.py"} <= set(names) and "docs/devices.md" not in names
    times = {path: path.stat().st_mtime_ns for path in (archive, folder / "cifar10.zip")}
    pack.main([])
    assert times == {path: path.stat().st_mtime_ns for path in times}  # nothing is packed twice
    (folder / "unpacked").mkdir(exist_ok=True)
    (folder / "unpacked" / "large").write_bytes(bytes(61_000_000))
    pack.main([])
    monkeypatch.setattr(pack, "LIMIT", 1e3)
    refuses(lambda: pack.main([]), "most 0 MB", "of it in checkout-")
    flags.tfds = str(folder)
    refuses(lambda: pack.main([]), "none in", kind=FileNotFoundError)


def test_a_machine_needs_no_packages_beyond_the_packed_ones():
    code = """
import sys
ours = "benchmarks", "corruptions", "data", "evaluation", "models", "runtime", "training"
for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
    del sys.modules[name]
absent = "matplotlib", "networkx", "jinja2", "grain", "safetensors", "pyarrow", "tensorflow", "pytest"
sys.modules.update(dict.fromkeys(absent))
import benchmarks.device.__main__, data.tfds_source
"""
    done = processes.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
