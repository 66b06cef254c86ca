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

Around it:

    any_classifier   the same for a function from images to logits: `from eval import evaluate`
    imported         a workdir made of weights that were trained elsewhere
    adaptation       BatchNorm statistics of other images in place of a network's
    enhancements     what is done to images or answers at test time, by name
    robustness       R against severity, for the calibration of ranges
    strength         PSNR and SSIM of corrupted images to their originals
    transforms       augmentation schemes and corruptions as distributions of transforms
    features         what a network sees of images under such transforms
    centres          mean features of corruptions, and the distances of schemes to them
    joint            such means over images that each have a draw of their own
    pool             distances of many transforms of one scheme, by number
    resampled        distances of single transforms with other images and draws
    running          such distances while they are measured, saved every minute
    forecast         how fast images go through, and how long the others will take
"""
