"""The commands that are attacked, on the smallest study that is one, and what each leaves when nothing disturbs it."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
from collections.abc import Mapping

import numpy as np

from tests.torture import commands, comparing

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
      start: the scenario whose result it starts from.
      without: what is removed from that result before.
      environment: variables for the command.
    """

    argv: tuple[str, ...]
    start: str = ""
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
        start="train",
    ),
    "overlap": Scenario(
        ("overlap.py", "--config=configs/default.py", *_SMALL, f"--config.study.corruptions={_PAIR}", _WORKDIR)
    ),
    "judge": Scenario(
        ("overlap.py", "--config=configs/default.py", *_SMALL, f"--config.study.corruptions={_PAIR}", _WORKDIR),
        start="overlap",
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
    "calibrate": Scenario(
        (
            "-m",
            "tools.calibrate",
            f"--config.calibrate.corruptions={_PAIR}",
            "--config.calibrate.images=120",
            "--config.eval.batch_size=120",
            _WORKDIR,
        ),
        start="overlap",
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
        start="overlap",
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
        start="train",
    ),
    "select": Scenario(("select_noc.py", "--overlap={case}/work/overlap.csv", "--sweep"), start="overlap"),
    "report": Scenario(("-m", "tools.report", _WORKDIR, "--nosamples"), start="overlap"),
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


class Place:
    """The folder of a torture: material, references and the case at hand, always under the same path."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder.resolve()
        self.case, self.material = self.folder / "case", self.folder / "material"
        self._references = self.folder / "references" / _code()
        if not self.material.exists():
            _make_material(self.material)

    def argv(self, name: str) -> list[str]:
        """The command line of a scenario here."""
        return [self._fill(part) for part in SCENARIOS[name].argv]

    def environment(self, name: str) -> dict[str, str]:
        return {key: self._fill(value) for key, value in SCENARIOS[name].environment.items()}

    def _fill(self, text):
        return text.replace("{case}", str(self.case)).replace("{material}", str(self.material))

    def begin(self, name: str) -> None:
        """Empties the case and puts there what the scenario starts from."""
        start = SCENARIOS[name].start
        self._put(self.reference(start) if start else None)
        for path in SCENARIOS[name].without:
            remove(self.case / "work" / path)

    def put_result(self, name: str) -> None:
        """Empties the case and puts there what the scenario leaves."""
        self._put(self.reference(name))

    def _put(self, source):
        shutil.rmtree(self.case, ignore_errors=True)
        if source is None:
            self.case.mkdir(parents=True)
        else:
            shutil.copytree(source, self.case)

    def reference(self, name: str) -> pathlib.Path:
        """What an undisturbed run of the scenario leaves; made when it is first asked for."""
        folder = self._references / name
        if not (folder / "facts.json").exists():
            self._make(name, folder)
        return folder / "result"

    def _make(self, name, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for attempt in range(2):  # the first compiles
            self.begin(name)
            ending = commands.run(self.argv(name), environment=self.environment(name))
            if ending.status:
                raise RuntimeError(f"the undisturbed scenario {name} ended with {ending.status}:\n{ending.tail(3000)}")
            found = comparing.snapshot(self.case)
            if attempt and found != first:  # noqa: F821 - of the attempt before
                raise RuntimeError(f"{name} twice: {comparing.differences(found, first)}")  # noqa: F821
            first = found  # noqa: F841
        shutil.copytree(self.case, folder / "result")
        paths = sum(1 for _ in self.case.rglob("*"))
        facts = {"seconds": ending.seconds, "paths": paths, "snapshot": found}
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))

    def facts(self, name: str) -> dict:
        """Seconds, number of paths and snapshot of the undisturbed run."""
        self.reference(name)
        return json.loads((self._references / name / "facts.json").read_text())

    def differences(self, name: str) -> list[str]:
        """What the case holds that an undisturbed run of the scenario does not leave."""
        return comparing.differences(comparing.snapshot(self.case), self.facts(name)["snapshot"])


def remove(path: pathlib.Path) -> None:
    """Removes a file or a folder, or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_material(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2000, 16, 16, 3), np.uint8)
    aside = folder.with_name("material.part")
    shutil.rmtree(aside, ignore_errors=True)
    for number in range(220):
        path = aside / "tree" / f"class{number % 10}" / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.kron(images[number, :4, :5], np.ones((5, 5, 1), np.uint8))).save(path)
    np.savez(aside / "source.npz", images=images, labels=rng.integers(0, 10, 2000))
    aside.rename(folder)


def _code():
    """Digest of the code that is attacked: with other code the references are made anew."""
    folders = ("analysis", "configs", "corruptions", "data", "evaluation", "models", "runtime", "tools", "training")
    paths = [path for folder in folders for path in (commands.ROOT / folder).rglob("*.py")]
    paths += [*commands.ROOT.glob("*.py"), pathlib.Path(__file__)]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
