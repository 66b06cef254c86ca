#!/usr/bin/env bash
# Guess: load_dataset("imagefolder", data_dir=...) of folders cat, dog and "bullet_train" gives
#        three classes.
# Seen:  a folder whose name holds the word train, test, dev or eval is taken for a split: the
#        images of cat and dog are dropped, without a word, and no labels are left. With test_tube
#        as well there are two splits, and the label of "bullet_train" is None.
# Hurts: ImageNet's "bullet train", "freight train", "test tube"-like classes; corruption folders
#        such as test_noise.
# Do:    give the files: data_files={"train": "FOLDER/**"}; count what was loaded.
# With:  datasets 5.2.0, Pillow 13.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datasets==5.2.0' 'pillow==13.0.0' 'numpy==2.4.6'
cat > check.py <<'EOF'
import os
import warnings

os.environ["HF_HOME"] = os.path.abspath("cache")
import datasets
import numpy as np
from PIL import Image

warnings.simplefilter("ignore")
datasets.disable_progress_bars()


def load(names, **options):
    folder = "-".join(names)
    for name in names:
        os.makedirs(f"{folder}/{name}")
        for i in range(5):
            Image.fromarray(np.full((4, 4, 3), 10 * i, np.uint8)).save(f"{folder}/{name}/{i}.png")
    if options:
        options = {"data_files": {"train": f"{folder}/**"}}
    loaded = datasets.load_dataset("imagefolder", data_dir=None if options else folder, **options)
    seen = {k: (len(v), v.features["label"].names if "label" in v.features else None) for k, v in loaded.items()}
    print(f"{len(names)} folders of 5: {names} ->", seen)
    return seen


assert load(["cat", "dog"]) == {"train": (10, ["cat", "dog"])}
assert load(["cat", "dog", "bullet_train"]) == {"train": (5, None)}
assert load(["cat", "dog", "crash_test"]) == {"test": (5, None)}
assert load(["cat", "test_tube", "bullet_train"]) == {
    "train": (5, ["bullet_train", "test_tube"]), "test": (5, ["bullet_train", "test_tube"])
}  # fmt: skip
assert load(["cat", "dogs", "bullet_train"], files=True) == {"train": (15, ["bullet_train", "cat", "dogs"])}
EOF
venv/bin/python check.py
