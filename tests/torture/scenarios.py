"""The commands that are attacked, on the smallest study that is one."""

import dataclasses
from collections.abc import Mapping

_SMALL = tuple(
    f"--config.{setting}"
    for setting in (
        "dataset.image_size=16",
        "dataset.train_limit=320",
        "dataset.test_limit=120",
        "train.batch_size=32",
        "train.epochs=3",
        "train.schedule=cosine",
        "train.learning_rate=0.05",
        "eval.batch_size=120",
    )
)
_PAIR = "('imagenet_c/impulse_noise','noc/salt_pepper')"
_WORKDIR = "--workdir={case}/work"
_WRITE = ("-m", "corruptions.write", "--out={case}/out", "--severities=0.5,1", "--corruptions=noc/contrast,noc/hue")
_MSD = ("images=8", "transforms=20", "draws=4", "halves=2", f"corruptions={_PAIR}", "severity=1")


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
SCENARIOS = {
    "train": Scenario(("train.py", "--config=configs/aug.py:noc/border", *_SMALL, _WORKDIR)),
    "eval": Scenario(
        (
            "eval.py",
            "--config.eval.corruptions=('noc/border','noc/hue','imagenet_c/contrast')",
            "--config.eval.severity=random",
            "--config.eval.batch_size=40",
            _WORKDIR,
        ),
        start=("train",),
    ),
    "overlap": Scenario(
        ("overlap.py", "--config=configs/default.py", *_SMALL, f"--config.study.corruptions={_PAIR}", _WORKDIR)
    ),
    "judge": Scenario(
        ("overlap.py", "--config=configs/default.py", *_SMALL, f"--config.study.corruptions={_PAIR}", _WORKDIR),
        start=("overlap",),
        without=_TABLES,
    ),
    "stream": Scenario(
        (
            "train.py",
            "--config=configs/scheme.py:augmix",
            "--config.dataset.name=shapes",
            "--config.model.name=small_resnet",
            *_SMALL,
            "--config.dataset.placement=stream",
            "--config.train.jsd_weight=0.0",
            _WORKDIR,
        )
    ),
    "write_npy": Scenario((*_WRITE, "--source={material}/source.npz", "--layout=npy")),
    "write_folders": Scenario(
        (*_WRITE, "--source={material}/tree", "--preprocess=resize", "--size=16", "--layout=folders")
    ),
    "stored": Scenario(
        ("eval.py", "--config.eval.stored={case}/out", "--config.eval.batch_size=200", _WORKDIR),
        start=("train", "write_npy"),
    ),
    "calibrate": Scenario(
        (
            "-m",
            "tools.calibrate",
            f"--config.calibrate.corruptions={_PAIR}",
            "--config.calibrate.images=120",
            "--config.eval.batch_size=120",
            _WORKDIR,
        ),
        start=("overlap",),
    ),
    "msd": Scenario(
        (
            "-m",
            "tools.msd",
            "--config=configs/msd.py",
            "--config.msd.schemes=('standard','patch_gaussian')",
            *(f"--config.msd.{setting}" for setting in _MSD),
            _WORKDIR,
        ),
        start=("overlap",),
    ),
    "adapt": Scenario(
        (
            "-m",
            "tools.adapt",
            "--source={case}/work",
            "--workdir={case}/adapted",
            "--config.adapt.scheme=",
            "--config.adapt.images=64",
            "--config.adapt.batch_size=32",
        ),
        start=("train",),
    ),
    "select": Scenario(("select_noc.py", "--overlap={case}/work/overlap.csv", "--sweep"), start=("overlap",)),
    "report": Scenario(("-m", "tools.report", _WORKDIR, "--nosamples"), start=("overlap",)),
    "folder": Scenario(
        (
            "train.py",
            "--config=configs/default.py",
            *_SMALL,
            "--config.train.epochs=1",
            "--config.dataset.name=image_folder",
            "--config.dataset.data_dir={material}/tree",
            _WORKDIR,
        ),
        environment={"JAXC_CACHE_DIR": "{case}/cache"},
    ),
}
