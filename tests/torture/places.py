"""The commands that are attacked, on the smallest study that is one, and folders of cases."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
import subprocess
from collections.abc import Mapping

import numpy as np

from tests.torture import commands, outcomes


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
        return [self._fill(part) for part in SCENARIOS[name].command.split()]

    def environment(self, name: str) -> dict[str, str]:
        return {key: self._fill(value) for key, value in SCENARIOS[name].environment.items()}

    def _fill(self, text):
        return text.replace("{case}", str(self.case)).replace("{material}", str(self.material))

    def begin(self, name: str) -> None:
        """Empties the case and puts there what the scenario starts from."""
        self._put([self.reference(start) for start in SCENARIOS[name].start])
        for path in SCENARIOS[name].without:
            remove(self.case / "work" / path)

    def put_result(self, name: str) -> None:
        """Empties the case and puts there what the scenario leaves."""
        self._put([self.reference(name)])

    def _put(self, sources):
        if self.case.is_mount():  # left by an interrupted case of a full disk
            subprocess.run(["umount", self.case], check=True)
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir(parents=True)
        for source in sources:
            shutil.copytree(source, self.case, dirs_exist_ok=True)

    def reference(self, name: str) -> pathlib.Path:
        """Makes, at the first call, the files that an undisturbed run of the scenario leaves."""
        folder = self._references / name
        if not (folder / "facts.json").exists():
            self._make(name, folder)
        return folder / "result"

    def _make(self, name, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self._once(name)  # compiles
        first = outcomes.snapshot(self.case)
        seconds = self._once(name)
        found = outcomes.snapshot(self.case)
        if found != first:
            raise RuntimeError(f"{name} twice: {outcomes.differences(found, first)}")
        shutil.copytree(self.case, folder / "result")
        paths = sum(1 for _ in self.case.rglob("*"))
        facts = {"seconds": seconds, "paths": paths, "snapshot": found}
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))

    def _once(self, name):
        """Seconds of an undisturbed run, whose result is in the case."""
        self.begin(name)
        ending = commands.run(self.argv(name), environment=self.environment(name))
        if ending.status:
            raise RuntimeError(f"the undisturbed scenario {name} ended with {ending.status}:\n{ending.tail(3000)}")
        return ending.seconds

    def facts(self, name: str) -> dict:
        """Seconds, number of paths and snapshot of the undisturbed run."""
        self.reference(name)
        return json.loads((self._references / name / "facts.json").read_text())

    def differences(self, name: str) -> list[str]:
        """Lists files of the case that an undisturbed run of the scenario does not leave."""
        return outcomes.differences(outcomes.snapshot(self.case), self.facts(name)["snapshot"])


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
    folders = ("analysis", "configs", "corruptions", "data", "evaluation", "models", "projects", "runtime", "tools")
    folders += ("training",)
    paths = [path for folder in folders for path in (commands.ROOT / folder).rglob("*.py")]
    paths += [*commands.ROOT.glob("*.py"), pathlib.Path(__file__)]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


_TRAINED = (
    "--config.dataset.image_size=16 --config.dataset.train_limit=320 --config.dataset.test_limit=120 "
    "--config.train.batch_size=32 --config.train.schedule=cosine --config.train.learning_rate=0.05 "
    "--config.eval.batch_size=120 --workdir={case}/work"
)
_SMALL, _ONE_EPOCH = (f"{_TRAINED} --config.train.epochs={epochs}" for epochs in (3, 1))
_PAIR = "('imagenet_c/impulse_noise','noc/salt_pepper')"
_ASKED = "('noc/border','noc/hue','imagenet_c/contrast')"
_OVERLAP = f"overlap.py --config=configs/default.py {_SMALL} --config.study.corruptions={_PAIR}"
_WRITE = "-m corruptions.write --out={case}/out --severities=0.5,1 --corruptions=noc/contrast,noc/hue"
_MSD = f"-m tools.msd --workdir={{case}}/work --config.msd.corruptions={_PAIR} --config.msd.severity=1"


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command and what it starts from.

    Attributes:
      command: with {case}, the folder it works in, and {material}, inputs that stay.
      start: the scenarios whose results it starts from.
      without: what is removed from those results before.
      environment: variables for the command.
    """

    command: str
    start: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


SCENARIOS = {
    "train": Scenario(f"train.py --config=configs/aug.py:noc/border {_SMALL}"),
    "eval": Scenario(
        f"eval.py --config.eval.corruptions={_ASKED} --config.eval.severity=random --workdir={{case}}/work "
        "--config.eval.batch_size=40",
        start=("train",),
    ),
    "overlap": Scenario(_OVERLAP),
    "judge": Scenario(
        _OVERLAP,
        start=("overlap",),
        without=("answers", "counts.csv", "scores.csv", "benchmark.json")
        + ("overlap.csv", "overlap_long.csv", "overlap.png"),
    ),
    "stream": Scenario(
        f"train.py --config=configs/scheme.py:augmix --config.dataset.name=shapes {_SMALL} "
        "--config.model.name=small_resnet --config.dataset.placement=stream --config.train.jsd_weight=0.0"
    ),
    "write_npy": Scenario(f"{_WRITE} --source={{material}}/source.npz --layout=npy"),
    "write_folders": Scenario(f"{_WRITE} --source={{material}}/tree --preprocess=resize --size=16 --layout=folders"),
    "stored": Scenario(
        "eval.py --config.eval.stored={case}/out --config.eval.batch_size=200 --workdir={case}/work",
        start=("train", "write_npy"),
    ),
    "calibrate": Scenario(
        f"-m tools.calibrate --config.calibrate.corruptions={_PAIR} --config.calibrate.images=120 "
        "--config.eval.batch_size=120 --workdir={case}/work",
        start=("overlap",),
    ),
    "msd": Scenario(
        f"{_MSD} --config=configs/msd.py --config.msd.schemes=('standard','patch_gaussian') --config.msd.images=8 "
        "--config.msd.transforms=20 --config.msd.draws=4 --config.msd.halves=2",
        start=("overlap",),
    ),
    "adapt": Scenario(
        "-m tools.adapt --source={case}/work --workdir={case}/adapted --config.adapt.scheme= --config.adapt.images=64 "
        "--config.adapt.batch_size=32",
        start=("train",),
    ),
    "select": Scenario("select_noc.py --overlap={case}/work/overlap.csv --sweep", start=("overlap",)),
    "report": Scenario("-m tools.report --workdir={case}/work --nosamples", start=("overlap",)),
    "samples": Scenario("-m tools.report --workdir={case}/work", start=("overlap",)),
    "sweep": Scenario(
        f"-m tools.sweep --config=configs/aug.py:noc/border {_ONE_EPOCH} --sweep train.label_smoothing=0.0,0.1"
    ),
    "schemes": Scenario(
        f"-m tools.scheme_study --config=configs/scheme_study.py:smoke {_ONE_EPOCH} --config.study.seeds=(0,) "
        "--config.study.schemes=('standard','patch_gaussian') --config.eval.corruptions=('noc/hue',)"
    ),
    "features": Scenario(f"{_MSD} --experiment=subsets --config=configs/msd.py:smoke", start=("overlap",)),
    "decoder": Scenario(
        "-m projects.structural.train_style_decoder --config=projects/structural/configs/style_decoder.py:smoke "
        "--config.adain.widths=(4,4,8,8) --config.adain.batch_size=4 --config.adain.steps=120 --workdir={case}/work"
    ),
    "styles": Scenario(
        "-m corruptions.write --imports=projects.structural.style --style={case}/work/style.npz --size=32 --limit=40 "
        "--corruptions=style_transfer --source={material}/tree --preprocess=resize --severities=2,5 --layout=folders "
        "--jpeg_quality=none --out={case}/out",
        start=("decoder",),
    ),
    "folder": Scenario(
        f"train.py --config=configs/default.py {_ONE_EPOCH} --config.dataset.name=image_folder "
        "--config.dataset.data_dir={material}/tree",
        environment={"JAXC_CACHE_DIR": "{case}/cache"},
    ),
}
