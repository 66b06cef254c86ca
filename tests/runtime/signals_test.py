"""Signals while the main thread waits for the device: answered at once, and a second Ctrl-C ends the process."""

import signal
import subprocess
import sys
import time

import pytest

WAITS = """
import sys, jax, jax.numpy as jnp
from runtime import distributed, log
log.configure()
long = jax.jit(lambda x: jax.lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y @ y, x))
with distributed.watch_signals() as stop:
    stop.stopping, stop.saved = (lambda: "stopping after step 3 of 9"), (lambda: "runs/a is saved at step 2 of 9")
    endless = long(jnp.eye(500))
    print("waits", flush=True)
    if sys.argv[1] == "in polls" and not stop.passed(endless):
        print("passed", flush=True)
    endless.block_until_ready()
"""


@pytest.mark.parametrize("number, name", [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_process_that_waits_for_the_device_answers_and_a_second_control_c_ends_it(number, name):
    waits = "in polls" if number == signal.SIGTERM else "for the device"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, waits], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "waits\n"
        began = time.monotonic()
        process.send_signal(number)
        assert process.stderr.readline() == f"{name}: stopping after step 3 of 9. (A second Ctrl-C ends at once.)\n"
        if waits == "in polls":
            assert process.stdout.readline() == "passed\n"
            process.send_signal(signal.SIGTERM)  # a scheduler may send it again
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130 and time.monotonic() - began < 10
        assert process.stderr.read() == "Ended at once by a second Ctrl-C; runs/a is saved at step 2 of 9.\n"
    finally:
        process.kill()
