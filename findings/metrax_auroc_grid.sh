#!/usr/bin/env bash
# Guess: metrax.AUCROC of confidences is scikit-learn's roc_auc_score, or refuses what is no
#        probability.
# Seen:  it counts at 200 thresholds between 0 and 1. Confidences that lie close together share
#        one: with 500 confidences in [.990, .999] it gives .74, where .85 is right; of logits
#        below 0 it gives 0. Spread over [0, 1] the two agree within .005.
# Hurts: the AUROC of detecting errors or foreign images: confidences of trained networks crowd
#        near 1, so the better the network, the worse the number.
# Do:    sklearn.metrics.roc_auc_score, or AUCROC of ranks divided by their number.
# With:  google-metrax 0.2.4, scikit-learn 1.9.1, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'google-metrax==0.2.4' 'scikit-learn==1.9.1' 'flax==0.12.8' \
    'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import jax.numpy as jnp
import metrax
import numpy as np
from sklearn.metrics import roc_auc_score

rng = np.random.default_rng(0)
right = rng.integers(0, 2, 500)
spread = 1 / (1 + np.exp(-(rng.normal(size=500) + 1.6 * right - 0.8)))
for name, confidences in (
    ("spread over [0, 1]", spread),
    ("in [.990, .999]", 0.99 + 0.009 * spread),
    ("logits below 0", np.log(spread)),
):
    values = jnp.asarray(confidences, jnp.float32)
    found = float(metrax.AUCROC.from_model_output(predictions=values, labels=jnp.asarray(right)).compute())
    expected = roc_auc_score(right, np.asarray(values))
    print(f"{name}: metrax {found:.3f}, scikit-learn {expected:.3f}")
    assert (abs(found - expected) < 0.005) == (name == "spread over [0, 1]")
EOF
venv/bin/python check.py
