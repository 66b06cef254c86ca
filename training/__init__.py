"""Trains networks. A model is a pure function of its config, its seed and the images.

loop.py calls run.py for the next block of batches, which batches.py makes and augmentation.py corrupts, and steps.py for
the gradient steps.

sections.py      every setting of a config: default, meaning, range; the typed parts that functions take
cli.py           flags of the commands that take a config, the check of its settings, --help, ranges and files
study.py         a study: its data, config, name and folder of each of its models, training of missing models
loop.py          the order of events: `train` one model, `train_jobs` many at once, one on each row of the device mesh
run.py           one model as the host sees it: workdir, next batches, metrics, checkpoints
batches.py       the plan of a run, and the images of a step: mirrored, cropped, augmented, corrupted in part
augmentation.py  names of trainings; corruption, mixture of a benchmark, or augmentation scheme, over the mesh
steps.py         the loss, and the compiled block of training steps
pixels.py        the corruptions of a run, which stay those that it began with
checkpoints.py   checkpoints with digests
states.py        networks, their parameters and statistics, optimiser and learning rate
memory.py        device memory: images that lie there, are read ahead from the host, or do not fit
ranges.py        calibrated severity ranges, as tools.calibrate writes them
"""
