"""Evaluates trained models under corruptions.

    python eval.py --workdir=runs/aug_fog --config.eval.corruptions="('imagenet_c',)" --config.eval.severity=levels

The workdir is one of train.py or overlap.py, which also has the settings of the models. From the config come the `eval`
settings, `ranges` (calibrated severity ranges) and the place of the images (`dataset.data_dir`, `dataset.placement`).
Writes counts.csv, scores.csv (accuracy, R), errors.csv and errors_summary.csv, all with standard errors: mean error of
each corruption and benchmark, over seeds, and C-bar minus C; CE, mCE and relative CE, divided by the errors of a
reference. config.eval.reference names it: alexnet, a file, an evaluated workdir; by default AlexNet's published errors
where they hold for dataset, size, preprocessing, tables, ranges and frost. A condition is not evaluated again, unless the
model was trained again since. Tables follow from the answers in WORKDIR/answers and are written again.

    python eval.py --workdir=runs/aug_fog --config.eval.stored=PATH/TO/CIFAR-10-C

evaluates on a stored corrupted dataset instead: a folder in the CIFAR-10-C or ImageNet-C layout, or a tfds name such as
cifar10_corrupted; results go to WORKDIR/stored/NAME. In a set that corruptions.write wrote, files whose size or time has
changed are compared with their sha256, and all files with --config.eval.verify=True.

    python eval.py --config=configs/imagenet.py:resnet50 --config.model.checkpoint=resnet50.safetensors \\
        --config.dataset.data_dir=IMAGENET --workdir=runs/imagenet_resnet50

first imports torchvision's weights into the workdir (`models.torchvision`); tools.calibrate and tools.msd do the same. The
function `evaluate` evaluates any other classifier: `from eval import Classifier, TestSet, evaluate`.

    python eval.py --workdir=runs/imagenet_resnet50 --config.eval.natural=imagenet_r,objectnet \\
        --config.eval.natural_dir=DIR

evaluates on naturally shifted test sets too (`data.natural`), and on clean images of their classes: rows
`natural/imagenet_r` and `clean/imagenet_r` of counts.csv, for projects.natural_shift.

    python eval.py --workdir=runs/imagenet_resnet50 --config.eval.corruptions="('laion_c',)" --config.eval.severity=levels \\
        --config.eval.superclasses=mean --config.bank=TILES

evaluates as LAION-C does: on the test images of its 16 classes, each scored by the mean (or the sum) of the probabilities
of its classes of ImageNet; results go to WORKDIR/superclasses/mean.

    python eval.py --workdir=runs/aug_fog --config.eval.adapt=test

gives the network, for each condition, the BatchNorm statistics of its own corrupted test images, without labels (S.
Schneider et al., 2020, with the pseudo-count config.eval.pseudo_count; batches of 500). Such a model has seen the test's
images: its rows are marked MODEL+bn=test and are not to be compared with others. tools.adapt adapts to augmented training
images instead.

    python eval.py --workdir=runs/aug_fog --config.eval.enhance=clahe

equalises every corrupted test image before the networks see it: rows MODEL+enhance=clahe (`corruptions.enhance` has the
others: nlm, ten_crop ...).
"""

from runtime import command  # isort: skip

from corruptions.scoring.conditions import Conditions
from corruptions.scoring.predict import Classifier
from corruptions.scoring.test_set import TestSet
from evaluation.commands import Names, Tables, evaluate, run
from evaluation.results import print_scores
from training import cli

# `evaluate` and its arguments are for classifiers that are functions: from eval import Classifier, TestSet, evaluate
__all__ = ["Classifier", "Conditions", "Names", "Tables", "TestSet", "evaluate", "run"]


def work(config, workdir):
    """Evaluates the models of a workdir; process 0 prints their scores."""
    if counts := run(config, workdir):
        print_scores(counts)


if __name__ == "__main__":
    cli.define_flags(hosts=True)
    command.run(cli.main(work), cli.parse)
