#!/usr/bin/env bash
# Guess: jax.scipy.ndimage.map_coordinates is SciPy's function, so mode="constant" and mode="wrap"
#        give SciPy's values.
# Seen:  between the last pixel and the outside JAX blends pixel and cval where SciPy gives cval at
#        once, and JAX wraps with period n where SciPy's "wrap" has period n - 1. They are SciPy's
#        "grid-constant" and "grid-wrap". "nearest", "mirror" and "reflect" agree.
# Hurts: a warp (elastic, swirl, rotation) that was ported from SciPy has another border, with half-
#        lit pixels.
# Do:    compare with "grid-constant" and "grid-wrap", or shift by "nearest" and paint the outside
#        yourself.
# With:  jax 0.10.2, scipy 1.17.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'scipy==1.17.1' 'numpy==2.4.6'
cat > check.py <<'EOF'
import numpy as np
from jax.scipy.ndimage import map_coordinates as by_jax
from scipy.ndimage import map_coordinates as by_scipy

row = np.array([1, 2, 3, 4, 5], np.float32)
at = np.array([[-1.25, -0.5, 0, 3.5, 4, 4.25, 4.5, 5.5]], np.float32)


def both(mode, scipys=None):
    jaxs = np.asarray(by_jax(row, at, order=1, mode=mode))
    scipys = by_scipy(row, at, order=1, mode=scipys or mode)
    print(f"{mode:9} JAX {jaxs}\n{'':9} SciPy {scipys}")
    return np.allclose(jaxs, scipys, atol=1e-5)


assert not both("constant") and not both("wrap")
assert both("constant", "grid-constant") and both("wrap", "grid-wrap")
assert both("nearest") and both("mirror") and both("reflect")
assert by_jax(row, np.array([[4.5]]), order=1, mode="constant")[0] == 2.5
assert by_scipy(row, np.array([[4.5]]), order=1, mode="constant")[0] == 0
EOF
venv/bin/python check.py
