"""Training holds no more memory after 2,000 steps than after 500."""

import os
import sys

import pytest

from tests import processes
from tests.training.running import COMMAND

# train.py as it is, but each line of metrics.jsonl also tells the memory of the process.
PROBE = """
import gc, pathlib, resource, sys
import jax
import train
from runtime import command
from training import cli, run

def resident():
    pages = pathlib.Path("/proc/self/statm")  # Linux; elsewhere the peak, which grows when memory does
    return int(pages.read_text().split()[1]) * resource.getpagesize() if pages.exists() \\
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

write = run.MetricsLog.write
def probe(self, step, **values):
    write(self, step, **values)
    if step % 500 == 0:
        gc.collect()
        print("PROBE", step, resident(), len(jax.live_arrays()), flush=True)
run.MetricsLog.write = probe
cli.define_flags()
command.run(train.main, cli.parse)
"""
MIB = 2**20


@pytest.mark.skipif(sys.platform == "win32", reason="resource is for POSIX systems")
@pytest.mark.slow
def test_memory_does_not_grow_over_2000_steps(tmp_path):
    """20 epochs, with checkpoints: no array more is alive, and the process grows by less than 20
    MiB."""
    settings = ["train.epochs=20", "train.batch_size=8", "dataset.train_limit=800", "dataset.image_size=16"]
    given = [*COMMAND[2:], *(f"--config.{s}" for s in settings), f"--workdir={tmp_path / 'run'}"]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "1"}
    done = processes.run([sys.executable, "-c", PROBE, *given], env=environment)
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("PROBE")]
    assert [step for step, _, _ in found] == [500, 1000, 1500, 2000], done.stdout
    (_, early, arrays), *_, (_, late, arrays_late) = found
    assert arrays_late <= arrays
    assert late - early < 20 * MIB, f"grew from {early / MIB:.0f} to {late / MIB:.0f} MiB over 1,500 steps"
