#!/usr/bin/env bash
# Guess: Dataset.map computes anew when the function that it calls has changed.
# Seen:  the fingerprint holds the mapped function's own code and, of functions in installed
#        modules, the name alone: after a new version of a package changed corrupt(), map(lambda
#        x: corrupt(x)) gives the OLD result from its cache, in a new process, without a word.
# Hurts: after "pip install -U" of a corruption package, or an edit in a package's folder,
#        evaluations go on with the old pixels and are recorded under the new version.
# Do:    new_fingerprint= with the version in it, or load_from_cache_file=False.
# With:  datasets 5.2.0, dill 0.4.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datasets==5.2.0' 'dill==0.4.1' 'numpy==2.4.6'
cat > check.py <<'EOF'
import pathlib
import site
import subprocess
import sys

module = pathlib.Path(site.getsitepackages()[0], "a_corruption.py")
use = """
import datasets
import a_corruption

datasets.disable_progress_bars()
given = datasets.load_dataset("json", data_files="numbers.json", split="train", cache_dir="cache")
print(given.map(lambda row: {"y": a_corruption.corrupt(row["x"])})["y"])
"""
pathlib.Path("numbers.json").write_text('{"x": 1}\n{"x": 2}\n')


def mapped(factor):
    module.write_text(f"def corrupt(x):\n    return {factor} * x\n")
    done = subprocess.run([sys.executable, "-B", "-c", use], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[-2]


found = {factor: mapped(factor) for factor in (10, 1000)}
print("corrupt is the factor times x; results:", found)
assert found == {10: "Column([10, 20])", 1000: "Column([10, 20])"} or found == {10: "[10, 20]", 1000: "[10, 20]"}
EOF
venv/bin/python check.py
