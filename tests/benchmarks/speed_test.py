"""Tables of speed: the count of operations, rows that are continued, the works and their peers, each at a small size."""

import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import corruptions
import models
from benchmarks import sizes, speed, timing, training
from benchmarks.timing import training_flops
from tests.processes import ROOT
from tests.refusing import refuses


@pytest.mark.parametrize(
    "name, image_size, multiplications",
    [  # multiplications of a forward pass, as widely reported (torchvision's table gives GFLOPS counted this way)
        ("resnet18", 224, 1.814e9),
        ("resnet50", 224, 4.089e9),
        ("densenet121", 224, 2.834e9 - 3 * 0.0771e9),  # ours halves the maps before the 1x1 convolutions of transitions
        ("cifar_resnet18", 32, 0.5557e9),
    ],
)
def test_operations_are_three_forward_passes_of_the_published_size(name, image_size, multiplications):
    classes = 10 if image_size == 32 else 1000
    assert training_flops(name, image_size, classes) == pytest.approx(6 * multiplications, rel=0.03)


def test_operations_agree_with_the_compiler():
    """XLA's own count of an unrolled step, of which the elementwise part of a wide network is a few per cent."""
    network = models.build("small_resnet", 10, dtype="float32", conv="xla", widths=(96, 192))
    graphdef, params, rest = nnx.split(network, nnx.Param, ...)

    def step(params, rest, images, labels):
        def loss(params):
            logits, _ = nnx.merge(graphdef, params, rest, copy=True)(images, train=True)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        return jax.grad(loss)(params)

    lowered = jax.jit(step).lower(params, rest, jnp.zeros((2, 192, 192, 3)), jnp.zeros(2, jnp.int32))
    counted = 2 * training_flops("small_resnet", 192, 10, widths=(96, 192))
    # The compiler leaves out products with the padding's zeros (few in large maps) and counts what is elementwise.
    assert lowered.cost_analysis()["flops"] == pytest.approx(counted, rel=0.05)


def test_a_stopped_table_goes_on_behind_its_last_row(tmp_path, capsys):
    out, asked = tmp_path / "table.md", []

    def measure(name):
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return 1.25, "2,048"

    def table(top="# Here\n", names=("a", "b", "c")):
        return timing.continued(str(out), top, ("work", "s", "MiB"), names, measure)

    with pytest.raises(KeyboardInterrupt):
        table()
    assert out.read_text() == "# Here\n\n| work | s | MiB |\n|---|---|---|\n| a | 1.25 | 2,048 |\n"
    rows = table()
    assert asked == ["a", "b", "b", "c"] and rows == [[name, "1.25", "2,048"] for name in "abc"]
    assert table() == rows and len(asked) == 4
    assert timing.columns_of(out.read_text(), "work", "MiB") == [(name, "2,048") for name in "abc"]
    assert table(names=("d", "b")) == [[name, "1.25", "2,048"] for name in "db"]
    assert [name for name, _ in timing.columns_of(out.read_text(), "work", "MiB")] == ["d", "b", "a", "c"]
    with pytest.raises(ValueError, match=r"of this machine, revision and size in .*table\.md, found others: remove it"):
        table("# There\n")


def test_rows_are_read_or_named_as_wrong():
    assert training.parsed("resnet18:224:8") == ("resnet18", 224, 8)
    for text in ("resnet18:big:8", "resnet18", "resnet18:224:8:1"):
        with pytest.raises(ValueError, match=f"expected NAME:SIDE:BATCH, found '{text}'"):
            training.parsed(text)
    assert speed.names_of(["imagenet_c", "augmix", "imagenet_c/fog"]) == [*corruptions.names("imagenet_c"), "augmix"]


def test_programs_are_compiled_anew_after_the_cache_was_used(tmp_path):
    """In a separate process: a program is read from the disk, compiled, and read again."""
    code = (
        "import jax, sys; from benchmarks import timing\n"
        "jax.config.update('jax_compilation_cache_dir', sys.argv[1])\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "seen = []; jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))\n"
        "for keep in (True, True, False, True):\n"
        "    timing.keep_programs(keep); jax.clear_caches(); seen.clear(); jax.jit(lambda x: x + 1)(1.0)\n"
        "    print(sum(event.endswith('cache_hits') for event in seen))\n"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    hits = [int(line) > 0 for line in done.stdout.split()]
    assert hits == [False, True, False, True], done.stderr


class Peer:
    """Takes a quarter of a second for four images, and lacks pixelate."""

    def spend(self, name, levels):
        assert len(levels) == 4
        return None if name.endswith("pixelate") else timing.Spent(0.25, 0.5)


def cells(name, peers=None, numpy=False):
    given = types.SimpleNamespace(rounds=2, numpy=numpy, alone=False)
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8))
    found = speed.cells(name, images, peers or {}, given)
    titles = (title for peer in peers or ["peer"] * numpy for title in speed.columns(peer))
    return dict(zip((*speed.HEADER[1:], *titles, "load"), found, strict=True))


@pytest.mark.parametrize("name", ["imagenet_c/contrast", "clahe_channel", "patch_gaussian", "answers=small_resnet"])
def test_works_of_every_kind_are_measured(name):
    found = cells(name)
    assert float(found["ms/image"]) > 0 and float(found["images/s"].replace(",", "")) > 0


def test_a_peer_is_compared_and_may_lack_a_work():
    found = cells("imagenet_c/contrast", {"peer": Peer(), "torch": Peer()})
    assert found["peer ms/image"] == "62.500" and found["peer CPU ms/image"] == "125.000"
    assert float(found["peer / ours"]) == pytest.approx(62.5 / float(found["ms/image"]), rel=0.02)
    assert found["torch CPU ms/image"] == "125.000"
    assert cells("imagenet_c/pixelate", {"peer": Peer()})["peer / ours"] == "-"
    assert float(cells("cbar/technicolor", numpy=True)["CPU, peer / ours"]) > 0


def test_a_peer_answers_lines_with_lines(tmp_path, monkeypatch):
    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys\nprint(json.dumps({'version': sys.argv[1]}), flush=True)\n"
        "for line in sys.stdin:\n    ask = json.loads(line)\n"
        "    if ask.get('end'):\n        sys.exit(3)\n"
        "    print(json.dumps([1.5, ask['x']] if 'x' in ask else None), flush=True)\n"
    )
    monkeypatch.setattr(timing, "PEERS", tmp_path)
    with timing.Peer(sys.executable, "peer.py", "9") as peer:
        assert peer.hello == {"version": "9"}
        assert peer.spend(x=2) == timing.Spent(1.5, 2) and peer.spend() is None
        refuses(lambda: peer.spend(end=True), "answer of", "exit code 3", kind=RuntimeError)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process the peak of its memory")
def test_memory_is_at_least_that_of_the_image_that_comes_back():
    image = np.zeros((1, 4096, 4096, 3), np.uint8)
    grown = timing.process_memory(lambda: corruptions.corrupt(jax.random.key(0), image, "noc/gray_scale", 0.5))
    assert 48 * 2**20 <= grown < 4096 * 2**20


@pytest.mark.slow
def test_a_row_of_training_is_measured():
    given = types.SimpleNamespace(rounds=2, gigaflops=0.001, corruption="noc/border")
    found = dict(zip(training.HEADER[1:], training.cells("small_resnet:16:8", None, "float32", given)))
    for key in ("images/s", "CPU images/s", "loop images/s", "half corrupted"):
        assert float(found[key].replace(",", "")) > 0
    assert found["type"] == "float32" and found["of the peak"].endswith(" %")


def test_rates_of_cpu_time_are_those_of_all_threads_and_the_peers_faster_layout_counts(monkeypatch):
    block = lambda *given: types.SimpleNamespace(devices=1, compiling={"memory_bytes": 2**20})  # noqa: E731
    monkeypatch.setattr(training.works, "Training", block)
    monkeypatch.setattr(training.works, "loop", lambda *given: {"images_per_second": 7})
    monkeypatch.setattr(training.works, "share_of_peak", lambda *given: {"share_of_peak": 0.5})
    monkeypatch.setattr(training.os, "sched_getaffinity", lambda process: {0, 1})
    spent = {"": (1.0, 1.0), "NCHW": (4.0, 8.0), "NHWC": (2.0, 4.0)}
    times = {key: timing.Times(None, np.array([wall]), np.array([cpu])) for key, (wall, cpu) in spent.items()}
    monkeypatch.setattr(timing, "measure", lambda works, rounds: {key: times[key] for key in works})
    given = types.SimpleNamespace(rounds=1, gigaflops=1e-9, corruption="noc/border")
    found = training.cells("small_resnet:32:10", object(), "float32", given)
    found = dict(zip((*training.HEADER[1:], *timing.PEER_COLUMNS), found))
    keys = ("images/s", "CPU images/s", "loop images/s", "of the peak")
    assert [found[key] for key in keys] == ["10", "20", "7", "50 %"]
    assert [found[key] for key in timing.PEER_COLUMNS] == ["5", "5", "2.00", "4.00"]


def test_the_rest_of_a_peers_images_is_estimated_from_some(monkeypatch):
    seconds = {1: 10.0, 5: 18.0}  # two a further image
    monkeypatch.setattr(
        sizes, "process", lambda arguments, **_: (seconds[int(arguments[3])], 1.0, 100 * len(arguments))
    )
    given = types.SimpleNamespace(peer_python="PEER", peer_number=5, number=50, low=32, high=64)
    cpu, wall, memory = sizes.peer_process(given)
    assert cpu == 10 + 2 * 49 and np.isnan(wall) and memory == 600
