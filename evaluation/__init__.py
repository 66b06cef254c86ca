"""Trained models in, answers and features out.

What a reader of eval.py meets, in that order:

    trained_models   the finished models of a workdir, by (name, seed)
    conditions       clean images, and corruptions at severities, as the settings of a command name them
    shown            the test images under a condition, the same for every model
    evaluate         every model under every condition, but for what the workdir holds already
    correctness      which of the images shown each model answers correctly
    answers          the folder of a workdir that keeps them
    measured         what errors are measured under: dataset, size, tables, ranges, frost
    results          counts.csv, scores.csv, errors.csv and errors_summary.csv, derived from answers
    workdir          all of these for a workdir, as config.eval asks

Around it:

    exits            the answers of networks that have several, and how sure they are
    any_classifier   `corruptions.evaluate` into a workdir, its errors compared: `from eval import evaluate`
    imported         a workdir made of weights that were trained elsewhere
    start            what a training run starts from: a model of a workdir, or weights in a file
    adaptation       BatchNorm statistics of other images in place of a network's
    robustness       R against severity, for the calibration of ranges
    strength         PSNR and SSIM of corrupted images to their originals
    natural          the sets of natural shift, with the classes that each shows
    flips            the best classes on each frame of sequences of small perturbations
    verification     a workdir held against what its results came from (`python -m tools.check`)
    distances        features of transforms, and distances between schemes and corruptions
"""
