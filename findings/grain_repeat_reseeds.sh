#!/usr/bin/env bash
# Guess: ds.random_map(noise).repeat(2) shows the same noisy pictures twice: what lies before
#        repeat() was decided before it.
# Seen:  repeat reseeds all that lies before it: the second epoch has other noise, and another
#        order of an earlier shuffle. With reseed_each_epoch=False both epochs are equal, for
#        random_map and shuffle alike.
# Hurts: a test set that is corrupted "once" and read in several epochs is another one in each, and
#        so is a validation split whose noise should stay while training goes on.
# Do:    repeat(reseed_each_epoch=False) for a test set.
# With:  grain 0.2.18, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'grain==0.2.18' 'numpy==2.4.6'
cat > check.py <<'EOF'
import grain


class Noise(grain.transforms.RandomMap):
    def random_map(self, record, rng):
        return record, int(rng.integers(1000))


def epochs(**options):
    noisy = grain.MapDataset.range(4).seed(0).shuffle().random_map(Noise()).repeat(2, **options)
    found = [noisy[i] for i in range(8)]
    return found[:4], found[4:]


once = grain.MapDataset.range(4).seed(0).shuffle().random_map(Noise())
for options in ({}, {"reseed_each_epoch": False}):
    print(options, *epochs(**options), sep="\n  ")
first, second = epochs()
assert first == [once[i] for i in range(4)] and [r for r, _ in first] != [r for r, _ in second]
assert not set(dict(first).values()) & set(dict(second).values())
first, second = epochs(reseed_each_epoch=False)
assert first == second
EOF
venv/bin/python check.py
