"""What is asked of trained models: `eval`, `adapt`, `study`, `msd`, `search`, `calibrate`."""

import functools

from data.natural.sets import listed as natural_sets
from evaluation import enhancements
from runtime.schema import choice, names, number, several, switch, text, whole, word
from training.schema import named
from training.schema.inputs import SEED

_corruptions = functools.partial(names, what="a corruption or a benchmark", check=named.corruption)
_severity = functools.partial(word, expected=named.SEVERITY, check=named.severity)
_scheme = functools.partial(word, expected=named.SCHEME, check=named.scheme)
_folder = functools.partial(word, expected="the name of a folder", check=named.folder)
_seed = functools.partial(whole, low=0, high=SEED)

SETTINGS = {
    "eval.seed": _seed("of the corrupted test sets, the same for every model"),
    "eval.corruptions": _corruptions("corruptions and benchmarks to evaluate under"),
    "eval.severity": _severity("random, levels, or numbers: 1,3,5 (levels) or 0,0.5,1 (fractions)"),
    "eval.stored": text(
        "a stored corrupted dataset in place of eval.corruptions (eval.py)", "a folder, a tfds name, or ''"
    ),
    "eval.verify": switch("compare all of a stored dataset with its sha256, not just samples"),
    "eval.natural": word(
        "naturally shifted test sets too, imagenet_r,objectnet (eval.py)",
        "names of data.natural.NAMES, separated by commas, or ''",
        natural_sets,
    ),
    "eval.natural_dir": text("folder that holds these sets; '' is where tfds datasets are", "a folder, or ''"),
    "eval.batch_size": whole("images at a time", 1, 2**20),
    "eval.reference": text(
        "whose errors CE and mCE are relative to; '' is AlexNet where its published errors hold",
        "alexnet, a file, an evaluated workdir, or ''",
    ),
    "eval.reference_mismatch": choice("a named reference that holds for other conditions", "refuse", "label"),
    "eval.enhance": choice(
        "what is done to every test image before the networks see it (eval.py)", "", *enhancements.names()
    ),
    "eval.adapt": choice("test: BatchNorm statistics of each corrupted test set (eval.py)", "", "test"),
    "eval.pseudo_count": number(
        "images that the statistics from training count as, against one for each image adapted to", 0
    ),
    "adapt.scheme": _scheme(
        "of the training images that give the statistics; '' is mirror and crop alone (tools.adapt)"
    ),
    "adapt.images": whole("training images adapted to", 2),
    "adapt.batch_size": whole(
        "images at a time; each layer sees the others normalised by the statistics of its batch", 2, 2**20
    ),
    "adapt.pseudo_count": number("images that the statistics from training count as; 0 replaces them", 0),
    "adapt.seed": _seed("of the images and their augmentation"),
    "study.corruptions": _corruptions("overlap.py trains one model on each, besides the standard one"),
    "study.mixtures": names(
        "overlap.py trains on these too: what do they cover?", "'mixture=BENCHMARK'", named.mixture
    ),
    "study.schemes": names(
        "tools.scheme_study trains one model with each: standard (none), augment.names(), NAME+jsd, augmix=* (512), stored=FOLDER/*.npz",
        "a scheme's name",
        named.study_scheme,
    ),
    "study.enhancements": names(
        "tools.enhancement_study tests each, and trains with those after train=",
        "an enhancement of evaluation.enhancements",
        named.enhancement,
    ),
    "study.seeds": several("of the models of each training", _seed(""), 1),
    "study.parallel": whole(
        "models trained at once, each on devices of its own; 0: one a device, on a CPU one", 0, 65536
    ),
    "study.threshold": number("largest overlap within the selected benchmark", 0, 1),
    "msd.model": text("which model of the workdir gives the features: what it was trained with", "a model's name"),
    "msd.model_seed": _seed("its seed"),
    "msd.seed": _seed("of the images and of all draws"),
    "msd.images": whole("training images, without mirroring or cropping", 1),
    "msd.schemes": names(
        "schemes: standard (no augmentation), augment.names(), augmix=* (512), corruptions, benchmarks",
        "a scheme's name",
        named.filled,
    ),
    "msd.transforms": whole("drawn for each scheme; the paper's figures take 100,000 (configs/msd.py:paper)", 1),
    "msd.corruptions": _corruptions("corruptions and benchmarks that distances go to", least=1),
    "msd.severity": _severity("as eval.severity"),
    "msd.draws": whole("for each corruption and severity, averaged to its centre", 1),
    "msd.halves": whole(
        "random halves of images, transforms and draws behind the spread; 0 is none", 0, 100_000, but=1
    ),
    "msd.chunk": whole("transforms at a time, for speed and memory only; 0 fits the device"),
    "msd.errors": text(
        "counts.csv with the schemes as models: correlates distance with error", "a pattern of paths, or ''"
    ),
    "msd.out": _folder("of results in the workdir"),
    "msd.toy.first": word("of the two corruptions that tools.msd_toy mixes", "a corruption", named.one_corruption),
    "msd.toy.second": word("the other", "a corruption", named.one_corruption),
    "msd.toy.severity": _severity("of both, one number"),
    "msd.toy.fractions": several("shares of the first", number("", 0, 1), 1),
    "msd.toy.out": _folder("of results in the workdir"),
    "msd.subsets.scheme": _scheme("that tools.msd_subsets draws from"),
    "msd.subsets.pool": whole("transforms that are put in order; the paper takes 100,000", 1),
    "msd.subsets.sizes": several("of the subsets, up to the pool", whole("", 1), 1),
    "msd.subsets.out": _folder("of results in the workdir"),
    "msd.resampling.scheme": _scheme("whose transforms tools.msd_resampling measures the distance of"),
    "msd.resampling.pairs": whole("of a transform and a corruption; the paper takes 100", 1),
    "msd.resampling.resamplings": whole("of each pair, with other images and draws; the paper takes 100", 2),
    "msd.resampling.images": several("numbers of images", whole("", 1), 1, order="rising"),
    "msd.resampling.draws": several("numbers of draws", whole("", 1), 1, order="rising"),
    "msd.resampling.out": _folder("of results in the workdir"),
    "search.seeds": several(
        "of the networks that give tools.search_cbar features, one for each of study.seeds", _seed("")
    ),
    "search.images": whole("training images that they are shown, without mirroring or cropping", 1),
    "search.draws": whole("of each corruption and level, each shown to all images; 0: each image has one of its own"),
    "search.target": number(
        "mean error in percent of the benchmark to be made; 0 is that of the networks on ImageNet-C", 0, 100
    ),
    "search.seed": _seed("of the images, the draws and the random benchmarks; each run adds its number"),
    "calibrate.corruptions": _corruptions("corruptions and benchmarks to calibrate", least=1),
    "calibrate.targets": several(
        "R of the standard model at the mild and at the severe end", number("", 0, 1, above=True, below=True), 2, 2
    ),
    "calibrate.images": whole("test images R is measured on, balanced over classes; 0 is all"),
    "calibrate.seed": _seed("of the draws"),
}
