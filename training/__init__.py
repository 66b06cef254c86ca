"""Training: data in, trained state out. A model is a pure function of its config and seed.

A training step is in four files: plan.py, batches.py, augmentation.py, steps.py.

sections.py      every setting of a config: default, meaning, range; the typed parts that functions take
names.py         names of trainings, and the names that settings take
rules.py         the check of a config: each setting alone, then those that exclude each other
cli.py           flags of the commands that take a config, their default workdir, imports, ranges, frost, bank and style
study.py         a study: its data, config, name and folder of each of its models, training of the missing ones
loop.py          the order of events: `train` one model, `train_jobs` many at once, `read_back`
rows.py          the models that train at the same time, one on each row of the device mesh
run.py           one model as the host sees it: workdir, next batches, metrics, checkpoints
plan.py          steps, blocks and shapes of a run
batches.py       the images of a step: mirrored, cropped, augmented, corrupted in part
augmentation.py  corruption, mixture of a benchmark, or augmentation scheme, over the mesh
steps.py         the loss, and the compiled block of training steps
states.py        networks, their parameters and statistics, optimiser and learning rate
stream.py        images that do not fit in device memory, read ahead from the host
memory.py        refuses a batch that does not fit a device, before the first step
checkpoint.py    checkpoints with digests; a damaged one gives way to the one before
ranges.py        calibrated severity ranges, as tools.calibrate writes them
"""
