#!/usr/bin/env bash
# Guess: StandardCheckpointer().save(path, state) as the last line of a script leaves a checkpoint
#        when it exits with 0.
# Seen:  save() returns before it has written, and the interpreter's end does not wait: the exit
#        status is 0, an error of a thread is printed, and only "NAME.orbax-checkpoint-tmp" is
#        there, which nothing restores.
# Hurts: the last checkpoint of a training is lost, and a job scheduler takes the run for a success.
# Do:    use "with ocp.StandardCheckpointer() as c:", or call c.wait_until_finished() or c.close().
# With:  orbax-checkpoint 0.12.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'orbax-checkpoint==0.12.8' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os
import subprocess
import sys

save = "import jax.numpy as jnp, orbax.checkpoint as ocp; c = ocp.StandardCheckpointer()"
save += "; c.save(FOLDER + '/last', {'w': jnp.ones(1000)})"


def run(name, after=""):
    folder = os.path.abspath(name)
    os.makedirs(folder)
    code = save.replace("FOLDER", repr(folder)) + after
    status = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode
    print(f"{name}: exit status {status}, files {os.listdir(folder)}")
    return status, os.listdir(folder)


assert run("as_last_line") == (0, ["last.orbax-checkpoint-tmp"])
assert run("waited", "; c.wait_until_finished()") == (0, ["last"])
EOF
venv/bin/python check.py
