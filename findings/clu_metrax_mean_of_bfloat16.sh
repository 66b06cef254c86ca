#!/usr/bin/env bash
# Guess: clu's and metrax' Average of bfloat16 losses is their mean within a percent, over an epoch.
# Seen:  the sum is kept in the type of the values and stops growing: 500 batches of 128 losses of
#        .7 give .51 (clu), 2,000 give .13 (clu) and 1.0 (metrax, whose number of values stops,
#        too). metrax' MSE does the same. float16 gives NaN in clu. No warning.
# Hurts: losses and errors of networks that run in bfloat16 are wrong by any factor, more so the
#        longer the epoch. flax' nnx.metrics.Average sums in float32 and is right.
# Do:    values.astype(float32) before from_model_output.
# With:  clu 0.0.12, google-metrax 0.2.4, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'clu==0.0.12' 'google-metrax==0.2.4' 'flax==0.12.8' \
    'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import clu.metrics
import jax.numpy as jnp
import metrax
from flax import nnx


def mean(metric, batches, dtype):
    merged = None
    for _ in range(batches):
        of_batch = metric.from_model_output(jnp.full(128, 0.7, dtype))
        merged = of_batch if merged is None else merged.merge(of_batch)
    return float(merged.compute())


for metric in (clu.metrics.Average, metrax.Average):
    exact = mean(metric, 2000, jnp.float32)
    few, many = mean(metric, 500, jnp.bfloat16), mean(metric, 2000, jnp.bfloat16)
    print(f"{metric.__module__}: float32 {exact:.3f}, bfloat16 {few:.3f} after 500 batches, {many:.3f} after 2,000")
    assert abs(exact - 0.7) < 1e-3 and abs(many - 0.7) > 0.25, metric
right = nnx.metrics.Average()
for _ in range(2000):
    right.update(values=jnp.full(128, 0.7, jnp.bfloat16))
print(f"flax.nnx: bfloat16 {float(right.compute()):.3f}")
assert abs(float(right.compute()) - 0.7) < 0.01
EOF
venv/bin/python check.py
