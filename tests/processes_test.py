"""A forked command ends, prints and is set up as one that Python starts anew."""

import os
import sys

import pytest

from tests import compiling, processes

CODES = {
    "import sys; print('out'); sys.exit(3)": (3, "out\n", ""),
    "import sys; sys.exit('why')": (1, "", "why\n"),
    "import os; os.write(2, b'low'); os._exit(9)": (9, "", "low"),
    "import atexit, sys; atexit.register(print, 'last'); print(sys.argv[1:])": (0, "['a', 'b c']\nlast\n", ""),
    "import jax; print(jax.device_count(), jax.config.read('jax_disable_most_optimizations'))": (0, "3 True\n", ""),
}


@pytest.mark.parametrize("code", CODES)
def test_statuses_streams_and_settings(code, tmp_path):
    environment = compiling.environment() | {"JAX_NUM_CPU_DEVICES": "3"}
    done = processes.run([sys.executable, "-c", code, "a", "b c"], cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == CODES[code]


def test_an_error_is_a_traceback_and_a_signal_the_status(tmp_path):
    failed = processes.run([sys.executable, "-c", "1 / 0"])
    assert failed.returncode == 1 and failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    script = tmp_path / "script.py"
    script.write_text("import os, time; print(os.getcwd(), os.environ['OWN'], flush=True); time.sleep(60)")
    process = processes.Process(
        [sys.executable, script], cwd=tmp_path, env=os.environ | {"OWN": "set"}, output=tmp_path / "output"
    )
    process.kill_when((tmp_path / "output").read_text)
    assert (tmp_path / "output").read_text() == f"{tmp_path} set\n"
