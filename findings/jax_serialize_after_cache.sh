#!/usr/bin/env bash
# Guess: what jax.experimental.serialize_executable makes of a compiled program runs in another process, however
#        the program came to be.
# Seen:  of a program that was compiled it does. Of the same program, taken from JAX's own cache on disk
#        (jax_compilation_cache_dir), serialize gives a third to a half less bytes without a word,
#        deserialize_and_load passes, and the call of some, this one with a branch, is a JaxRuntimeError:
#        NOT_FOUND, a function is not found. Others run.
# Hurts: a server or a set of evaluation jobs that ships compiled programs works where it was tried first, and
#        fails from the second run on, on machines whose cache holds the program.
# Do:    serialize programs of a process without the cache (JAX_ENABLE_COMPILATION_CACHE=0), or try the loaded
#        program once and compile it where that fails.
# With:  jax 0.10.2, numpy 2.4.6, on a CPU
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > write.py <<'EOF'
import pickle
import sys

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable


def own_key(seed):
    key = jax.random.key(7)
    return jax.random.key_data(jax.lax.cond(seed == 0, lambda: key, lambda: jax.random.fold_in(key, seed)))


hits = 0


def count(event, **details):
    global hits
    hits += event == "/jax/compilation_cache/cache_hits"


jax.monitoring.register_event_listener(count)
compiled = jax.jit(own_key).lower(jnp.uint32(1)).compile()
print("taken from the cache:", bool(hits))
assert bool(hits) == (sys.argv[1] == "second")
with open(sys.argv[1], "wb") as file:
    pickle.dump(serialize_executable.serialize(compiled), file)
EOF
cat > read.py <<'EOF'
import pickle
import sys

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

jax.devices()
with open(sys.argv[1], "rb") as file:
    program = serialize_executable.deserialize_and_load(*pickle.load(file))
try:
    program(jnp.uint32(1))
    end = "runs"
except jax.errors.JaxRuntimeError as error:
    end = str(error).partition(":")[0]
print("loaded:", end)
assert end == ("runs" if sys.argv[1] == "first" else "NOT_FOUND")
EOF
export JAX_PLATFORMS=cpu JAX_COMPILATION_CACHE_DIR=$folder/cache JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
for file in first second; do
    venv/bin/python write.py $file
    venv/bin/python read.py $file
done
