"""The commands that are attacked, on the smallest study that is one."""

import dataclasses
from collections.abc import Mapping

_SMALL = (
    *("--config.dataset.image_size=16", "--config.dataset.train_limit=320", "--config.dataset.test_limit=120"),
    *("--config.train.batch_size=32", "--config.train.epochs=3", "--config.train.schedule=cosine"),
    *("--config.train.learning_rate=0.05", "--config.eval.batch_size=120"),
)
_PAIR = "('imagenet_c/impulse_noise','noc/salt_pepper')"
_WORKDIR = "--workdir={case}/work"
_WRITE = ("-m", "corruptions.write", "--out={case}/out", "--severities=0.5,1", "--corruptions=noc/contrast,noc/hue")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command and what it starts from.

    Attributes:
      argv: with {case}, the folder it works in, and {material}, inputs that stay.
      start: the scenarios whose results it starts from.
      without: what is removed from those results before.
      environment: variables for the command.
    """

    argv: tuple[str, ...]
    start: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


_TABLES = ("answers", "counts.csv", "scores.csv", "overlap.csv", "overlap_long.csv", "benchmark.json", "overlap.png")
_TRAIN = ("train.py", "--config=configs/aug.py:noc/border", *_SMALL, _WORKDIR)
_ASKED = "('noc/border','noc/hue','imagenet_c/contrast')"
_EVAL = ("eval.py", f"--config.eval.corruptions={_ASKED}", "--config.eval.severity=random", _WORKDIR)
_OVERLAP = ("overlap.py", "--config=configs/default.py", *_SMALL, f"--config.study.corruptions={_PAIR}", _WORKDIR)
_STREAM = (
    *("train.py", "--config=configs/scheme.py:augmix", "--config.dataset.name=shapes", *_SMALL, _WORKDIR),
    *("--config.model.name=small_resnet", "--config.dataset.placement=stream", "--config.train.jsd_weight=0.0"),
)
_FOLDERS = ("--source={material}/tree", "--preprocess=resize", "--size=16", "--layout=folders")
_STORED = ("eval.py", "--config.eval.stored={case}/out", "--config.eval.batch_size=200", _WORKDIR)
_CALIBRATE = (
    *("-m", "tools.calibrate", f"--config.calibrate.corruptions={_PAIR}", "--config.calibrate.images=120"),
    *("--config.eval.batch_size=120", _WORKDIR),
)
_MSD = (
    *("-m", "tools.msd", "--config=configs/msd.py", "--config.msd.schemes=('standard','patch_gaussian')", _WORKDIR),
    *("--config.msd.images=8", "--config.msd.transforms=20", "--config.msd.draws=4", "--config.msd.halves=2"),
    *(f"--config.msd.corruptions={_PAIR}", "--config.msd.severity=1"),
)
_ADAPT = (
    *("-m", "tools.adapt", "--source={case}/work", "--workdir={case}/adapted", "--config.adapt.scheme="),
    *("--config.adapt.images=64", "--config.adapt.batch_size=32"),
)
_ONE_EPOCH = (*_SMALL, "--config.train.epochs=1")
_SWEEP = (
    *("-m", "tools.sweep", "--config=configs/aug.py:noc/border", *_ONE_EPOCH, _WORKDIR),
    *("--sweep", "train.label_smoothing=0.0,0.1"),
)
_SCHEMES = (
    *("-m", "tools.scheme_study", "--config=configs/scheme_study.py:smoke", *_ONE_EPOCH, _WORKDIR),
    *("--config.study.schemes=('standard','patch_gaussian')", "--config.study.seeds=(0,)"),
    "--config.eval.corruptions=('noc/hue',)",
)
_FEATURES = (
    *("-m", "tools.msd", "--experiment=subsets", "--config=configs/msd.py:smoke", _WORKDIR),
    *(f"--config.msd.corruptions={_PAIR}", "--config.msd.severity=1"),
)
_DECODER = (
    *("-m", "projects.structural.train_style_decoder", "--config=projects/structural/configs/style_decoder.py:smoke"),
    *("--config.adain.widths=(4,4,8,8)", "--config.adain.batch_size=4", "--config.adain.steps=120", _WORKDIR),
)
_STYLES = (
    *("-m", "corruptions.write", "--imports=projects.structural.style", "--style={case}/work/style.npz", "--size=32"),
    *("--corruptions=style_transfer", "--source={material}/tree", "--limit=40", "--preprocess=resize"),
    *("--severities=2,5", "--layout=folders", "--jpeg_quality=none", "--out={case}/out"),
)
_FOLDER = (
    *("train.py", "--config=configs/default.py", *_SMALL, "--config.train.epochs=1", _WORKDIR),
    *("--config.dataset.name=image_folder", "--config.dataset.data_dir={material}/tree"),
)
SCENARIOS = {
    "train": Scenario(_TRAIN),
    "eval": Scenario((*_EVAL, "--config.eval.batch_size=40"), start=("train",)),
    "overlap": Scenario(_OVERLAP),
    "judge": Scenario(_OVERLAP, start=("overlap",), without=_TABLES),
    "stream": Scenario(_STREAM),
    "write_npy": Scenario((*_WRITE, "--source={material}/source.npz", "--layout=npy")),
    "write_folders": Scenario((*_WRITE, *_FOLDERS)),
    "stored": Scenario(_STORED, start=("train", "write_npy")),
    "calibrate": Scenario(_CALIBRATE, start=("overlap",)),
    "msd": Scenario(_MSD, start=("overlap",)),
    "adapt": Scenario(_ADAPT, start=("train",)),
    "select": Scenario(("select_noc.py", "--overlap={case}/work/overlap.csv", "--sweep"), start=("overlap",)),
    "report": Scenario(("-m", "tools.report", _WORKDIR, "--nosamples"), start=("overlap",)),
    "samples": Scenario(("-m", "tools.report", _WORKDIR), start=("overlap",)),
    "sweep": Scenario(_SWEEP),
    "schemes": Scenario(_SCHEMES),
    "features": Scenario(_FEATURES, start=("overlap",)),
    "decoder": Scenario(_DECODER),
    "styles": Scenario(_STYLES, start=("decoder",)),
    "folder": Scenario(_FOLDER, environment={"JAXC_CACHE_DIR": "{case}/cache"}),
}
