#!/usr/bin/env bash
# Guess: grain.DataLoader gives the same batches for every worker_count; workers only make it
#        faster.
# Seen:  batches are made inside the workers, each of which reads every worker_count-th record:
#        without any shuffle two workers give [0 2 4 6] [1 3 5 7], and with drop_remainder=True
#        three workers lose 4 of 16 records where none, one and two workers lose none.
# Hurts: per-image results line up with the wrong images, BatchNorm sees other batches, and an
#        "evaluation of all images" misses some, when a faster machine gets one more worker.
# Do:    batch after the loader, or use
#        grain.MapDataset(...).batch(...).to_iter_dataset().mp_prefetch(...).
# With:  grain 0.2.18, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'grain==0.2.18' 'numpy==2.4.6'
cat > check.py <<'EOF'
import grain
from absl import flags


class Numbers:
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return int(index)


def batches(workers, drop):
    sampler = grain.samplers.IndexSampler(16, shuffle=False, num_epochs=1, shard_options=grain.sharding.NoSharding(), seed=0)
    batch = grain.transforms.Batch(4, drop_remainder=drop)
    loader = grain.DataLoader(data_source=Numbers(), sampler=sampler, operations=[batch], worker_count=workers)
    return [[int(i) for i in rows] for rows in loader]


if __name__ == "__main__":
    flags.FLAGS(["check"])
    seen = {}
    for workers in (0, 2, 3):
        for drop in (False, True):
            seen[workers, drop] = batches(workers, drop)
            print(f"{workers} workers, drop_remainder={drop}: {seen[workers, drop]}")
    assert seen[0, True][:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert seen[2, True][:2] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert sorted(map(len, seen[3, False])) == [1, 1, 2, 4, 4, 4]
    lost = [16 - sum(map(len, seen[workers, True])) for workers in (0, 2, 3)]
    print("records lost:", lost)
    assert lost == [0, 0, 4]
EOF
venv/bin/python check.py
