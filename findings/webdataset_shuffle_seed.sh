#!/usr/bin/env bash
# Guess: WebDataset(..., seed=0).shuffle(n) draws the same order in each run and another in each
#        epoch; so does .shuffle(n, seed=0).
# Seen:  seed=0 of WebDataset does not reach .shuffle(n): two runs have two orders. .shuffle(n,
#        seed=0) repeats, and repeats in every epoch as well: one order for the whole training.
#        .compose(detshuffle(n, seed=0)) does both.
# Hurts: a run "with a seed" is not the run of the paper, or SGD sees one fixed order of batches,
#        in which BatchNorm's and augmentations' neighbours never change.
# Do:    .compose(webdataset.filters.detshuffle(n, seed=0)).
# With:  webdataset 1.0.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'webdataset==1.0.2' 'numpy==2.4.6'
cat > check.py <<'EOF'
import webdataset
from webdataset.filters import detshuffle

with webdataset.TarWriter("shard.tar") as writer:
    for number in range(50):
        writer.write({"__key__": f"{number:03d}", "cls": number})


def orders(shuffled, **options):
    """The orders of two epochs."""
    dataset = shuffled(webdataset.WebDataset("shard.tar", shardshuffle=False, **options)).decode().to_tuple("cls")
    return [[int(number) for (number,) in dataset] for epoch in range(2)]


ways = {
    "WebDataset(seed=0).shuffle(50)": lambda: orders(lambda data: data.shuffle(50), seed=0),
    ".shuffle(50, seed=0)": lambda: orders(lambda data: data.shuffle(50, seed=0)),
    ".compose(detshuffle(50, seed=0))": lambda: orders(lambda data: data.compose(detshuffle(50, seed=0))),
}
found = {}
for name, way in ways.items():
    first, second = way(), way()
    assert sorted(first[0]) == list(range(50)) and first[0] != sorted(first[0])
    found[name] = first == second, first[0] != first[1]
    print(f"{name:34} the same in each run: {found[name][0]}, new in each epoch: {found[name][1]}")
assert list(found.values()) == [(False, True), (True, False), (True, True)]
EOF
venv/bin/python check.py
