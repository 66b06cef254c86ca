#!/usr/bin/env bash
# Guess: CheckpointManager.save(3, ...) in a folder that holds step 5 writes step 3, or raises an
#        error.
# Seen:  it returns False and writes nothing, without a warning; the same for step 5 again.
# Hurts: who goes back to an earlier step (a diverged run, another seed in the same folder) trains
#        for hours, and no checkpoint is written until the old step number is passed; a restore
#        gives the old weights.
# Do:    check what save() returns, or delete the later steps first.
# With:  orbax-checkpoint 0.12.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'orbax-checkpoint==0.12.8' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os

import numpy as np
import orbax.checkpoint as ocp

with ocp.CheckpointManager(os.path.abspath("run")) as manager:
    answers = []
    for step, weight in [(5, 5.0), (3, 3.0), (4, 4.0), (5, -1.0), (6, 6.0)]:
        answers.append(manager.save(step, args=ocp.args.StandardSave({"w": np.full(2, weight)})))
        manager.wait_until_finished()
    steps = list(manager.all_steps())
    print("save() of steps 5, 3, 4, 5, 6 returned", answers, "- stored steps", steps)
    assert answers == [True, False, False, False, True] and steps == [5, 6]
    assert manager.restore(5, args=ocp.args.StandardRestore())["w"][0] == 5
EOF
venv/bin/python check.py
