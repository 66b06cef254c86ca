"""A child forked after JAX has started is told to be spawned, where it would hang; every other
child works.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

# What a child does; the parent's key and images come with the fork.
USES = {
    "corrupt": "corruptions.corrupt(key, images, 'noc/brightness', 0.5)",
    "one image": "corruptions.noc.brightness(key, image, 0.5)",
    "augment": "corruptions.augment.augment(key, images, 'augmix')",
    "write": "corruptions.write_dataset('unused', (images, [0, 1]))",
    "key": "corruptions.keys.seed_key(1)",
}
START = """
import os, sys, signal, subprocess, warnings
import numpy as np, jax, corruptions
warnings.simplefilter("ignore")
images = np.zeros((2, 16, 16, 3), np.uint8)
image = np.zeros((16, 16, 3), np.float32)

def in_child(use):
    sys.stdout.flush()
    if not (child := os.fork()):
        signal.alarm(20)  # one that hangs all the same ends
        try:
            use()
            print("done", flush=True)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print(f"child ended with status {status}")
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_first_use_in_a_child_of_a_process_that_computes_is_refused():
    uses = "".join(f"in_child(lambda: {use})\n" for use in USES.values())
    lines = run(f"key = jax.random.key(0)\n{uses}in_child(lambda: in_child(lambda: {USES['corrupt']}))\n")
    refused = "RuntimeError: expected a process in which JAX can compute, found a child that was forked after JAX"
    for what, line in zip(USES, lines):
        assert line.startswith(refused) and "spawn" in line and "in the parent" in line, (what, line)
    assert len(lines) == len(USES) + 2 and lines[-2].startswith(refused) and lines[-1] == "done"  # a child's child too


def test_children_that_never_compute_or_that_exec_are_let_through():
    exec_child = "lambda: subprocess.run([sys.executable, '-c', 'from corruptions import devices; devices.refuse_forked()'], check=True)"
    assert run(
        "in_child(corruptions.devices.refuse_forked)\n"  # before JAX has started, a child may start it itself
        "jax.devices()\n"
        f"in_child({exec_child})\n"
        "in_child(lambda: corruptions.names('imagenet_c') + (corruptions.get('fog').family,))\n"
        "corruptions.devices.refuse_forked()\n"  # the parent goes on
        "print('parent')\n"
    ) == ["done", "done", "done", "parent"]
