"""Computes answers and features of trained models.

In the order in which a reader of eval.py meets them:

    commands         `run`, the evaluation of a workdir as config.eval says; `evaluate`, of any classifier
    trained_models   the finished models of a workdir, imported weights, the model that a training starts from
    shown            the test images under a condition, the same for every model, and their names
    evaluate         every model under every condition; the answers that a workdir holds
    correctness      which images each model and ensemble answers correctly, and how surely
    results          counts.csv, scores.csv, errors.csv and errors_summary.csv, from answers

Around them:

    adaptation       BatchNorm statistics of other images in place of a network's
    strength         PSNR and SSIM of corrupted images to their originals
    natural          the sets of natural shift, with the classes that each shows
    temperature      temperature scaling, fitted on training images that no model has seen
    superclasses     test images of LAION-C's 16 classes, for models of ImageNet's 1,000
    streams          networks that adapt while they predict a stream of images
    distances        features of transforms, and distances between schemes and corruptions
"""
