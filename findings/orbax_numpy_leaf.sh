#!/usr/bin/env bash
# Guess: restoring a checkpoint into a target of another shape is refused by Orbax.
# Seen:  a JAX array in the target is refused; a NumPy array of another shape is not: the leaf
#        comes back in the shape that was stored, without a word.
# Hurts: banks, statistics and counters kept in NumPy (a memory bank of 1,000 rows in a run that
#        was set up with 2,000) change size at a restart, and indices wrap or the rest is never
#        filled.
# Do:    compare shapes after restore, or keep state in JAX arrays.
# With:  orbax-checkpoint 0.12.8, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'orbax-checkpoint==0.12.8' 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import pathlib

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

with ocp.StandardCheckpointer() as checkpointer:
    for name, kind in (("numpy", np), ("jax", jnp)):
        path = pathlib.Path(name).resolve()
        checkpointer.save(path, {"bank": kind.arange(4)})
        checkpointer.wait_until_finished()
        try:
            shape = checkpointer.restore(path, {"bank": kind.zeros(8, int)})["bank"].shape
        except ValueError as error:
            shape = f"refused: {str(error).splitlines()[0][:60]}"
        print(f"{name}: stored (4,), target (8,): {shape}")
        assert shape == (4,) if kind is np else str(shape).startswith("refused")
EOF
venv/bin/python check.py
