"""Training: data in, trained state out. A model is a pure function of its config and seed.

study.py         the models of a study: which config each has, where it lives
parts.py         training those of a study that are missing, part by part
schemes.py       augmentation schemes as trainings of a study
loop.py          the order of events: `train` one model, `train_jobs` many at once, `read_back`
rows.py          the models that train at the same time, one on each row of the device mesh
run.py           one model as the host sees it: workdir, next batches, reports, checkpoints
batches.py       what a step sees: batches mirrored, cropped, augmented, corrupted in part
augmentation.py  corruption, mixture of a benchmark, or augmentation scheme, over the mesh
resized_crop.py  random resized crops of the ImageNet recipes
memory.py        whether a batch fits a device, asked of its compiler before the first step
stream.py        images that do not fit in device memory, read ahead from the host
steps.py         the compiled block of training steps
jsd.py           the consistency loss of AugMix
stability.py     the loss of stability training
batch_norm.py    over which images BatchNorm takes its statistics
states.py        parameters, statistics, optimiser and learning rate
stacks.py        states and batches of several models as arrays over the mesh
whitening.py     a first layer computed from the training images
checkpoint.py    checkpoints with digests; a damaged one gives way to the one before
metrics.py       metrics.jsonl, consistent with the checkpoint
ranges.py        calibrated severity ranges, as tools.calibrate writes them
style/           style transfer as a corruption, and how its weights are made
sections.py      every setting of a config: default, meaning, range; the typed parts that functions take
rules.py         names that settings take, and settings that exclude each other
cli.py           flags of the commands that take a config, their default workdir, imports, ranges, frost and style
"""
