"""The commands that die, on the smallest study that is one, and the folder where they run."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
import sys
import time

import numpy as np

from tests import processes
from tests.processes import ROOT
from tests.torture import outcomes

LIMIT = 1200  # seconds of a command that hangs


class Place:
    """The folder of a torture: material, references and the case at hand, always under the same path."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder.resolve()
        self.case, self.material = self.folder / "case", self.folder / "material"
        self.references = self.folder / "references" / _code()
        if not self.material.exists():
            _make_material(self.material)

    def start(self, name: str, *before: str) -> processes.Process:
        """Starts the command of a scenario, behind the words `before` (as after `python`)."""
        scenario = SCENARIOS[name]
        words = ["-c", scenario.code] if scenario.code else scenario.command.split()
        return processes.Process([sys.executable, *before, *map(self._fill, words)], together=True)

    def _fill(self, text):
        return text.replace("{case}", str(self.case)).replace("{material}", str(self.material))

    def finish(self, name: str, *before: str) -> str | None:
        """Runs the command to its end, as `start`; returns what it printed where it failed."""
        process = self.start(name, *before)
        said, _ = process.communicate(LIMIT)
        return f"status {process.returncode}: {said[-1500:]}" if process.returncode else None

    def begin(self, name: str) -> None:
        """Empties the case and puts there what the scenario starts from."""
        sources = [self.reference(start) for start in SCENARIOS[name].start]
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir(parents=True)
        for source in sources:
            shutil.copytree(source, self.case, dirs_exist_ok=True)

    def reference(self, name: str) -> pathlib.Path:
        """Makes, at the first call, the files that a run of the scenario leaves which was never killed."""
        folder = self.references / name
        if not (folder / "facts.json").exists():
            self._make(name, folder)
        return folder / "result"

    def _make(self, name, folder):
        shutil.rmtree(folder, ignore_errors=True)
        found, seconds, log = [], 0.0, self.folder / "changes"
        for _ in range(2):  # the first compiles
            self.begin(name)
            began = time.monotonic()
            if failed := self.finish(name, "-m", "tests.torture.dying", str(self.case), "0", str(log)):
                raise RuntimeError(f"{name} fails without a kill, {failed}")
            found.append(outcomes.snapshot(self.case))
            seconds = time.monotonic() - began
        if found[0] != found[1]:
            raise RuntimeError(f"{name} twice: {outcomes.differences(*found)}")
        shutil.copytree(self.case, folder / "result")
        facts = {"seconds": seconds, "changes": len(log.read_text().splitlines()), "snapshot": found[0]}
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))

    def facts(self, name: str) -> dict:
        """Seconds, number of changes and snapshot of the run that was never killed."""
        self.reference(name)
        return json.loads((self.references / name / "facts.json").read_text())

    def differences(self, name: str) -> list[str]:
        """Lists files of the case that a run which was never killed does not leave."""
        return outcomes.differences(outcomes.snapshot(self.case), self.facts(name)["snapshot"])


def _make_material(folder):
    from PIL import Image

    from analysis.cbar import scans

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2000, 16, 16, 3), np.uint8)
    aside = folder.with_name("material.part")
    shutil.rmtree(aside, ignore_errors=True)
    for number in range(60):
        path = aside / "tree" / f"class{number % 10}" / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.kron(images[number, :4, :5], np.ones((5, 5, 1), np.uint8))).save(path)
    np.savez(aside / "source.npz", images=images[:400], labels=rng.integers(0, 10, 400))
    names, references = tuple(f"cbar/c{k:02d}" for k in range(13)), ("imagenet_c/fog", "imagenet_c/frost")
    errors = [
        np.linspace(12, 40, levels) + rng.normal(0, 2, (len(of), levels))
        for of, levels in ((names, 10), (references, 5))
    ]
    features = [rng.normal(0, 1, (*of.shape, 6)).astype(np.float32) for of in errors]
    scans.write_scan(aside / "scan.npz", scans.Scan(names, errors[0], features[0], references, errors[1], features[1]))
    overlaps = rng.uniform(0, 0.2, (4, 4)).round(3)
    overlaps = np.triu(overlaps, 1) + np.triu(overlaps, 1).T + np.eye(4)
    lines = [["corruption", *names[:4]], *([name, *map(str, row)] for name, row in zip(names, overlaps))]
    (aside / "overlap.csv").write_text("".join(f"{','.join(line)}\n" for line in lines))
    aside.rename(folder)


def _code():
    """Digest of the code that is attacked: with other code the references are made anew."""
    folders = ("analysis", "configs", "corruptions", "data", "evaluation", "models", "runtime", "tools", "training")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    digest = hashlib.sha256()
    for path in sorted([*paths, *ROOT.glob("*.py"), pathlib.Path(__file__), pathlib.Path(outcomes.__file__)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command and what it starts from.

    Attributes:
      command: with {case}, the folder it works in, and {material}, inputs that stay.
      start: the scenarios whose results it starts from.
      code: Python code in place of a command.
    """

    command: str = ""
    start: tuple[str, ...] = ()
    code: str = ""


_TRAINED = (
    "--config.dataset.image_size=16 --config.dataset.train_limit=320 --config.dataset.test_limit=120 "
    "--config.train.batch_size=32 --config.train.schedule=cosine --config.train.learning_rate=0.05 "
    "--config.train.epochs=3 --config.eval.batch_size=120 --workdir={case}/work"
)
_PAIR = "('imagenet_c/impulse_noise','noc/salt_pepper')"
_WRITE = "-m corruptions.write --out={case}/out --severities=0.5,1 --corruptions=noc/contrast,noc/hue"
_EVALUATE = """
import numpy as np
import corruptions

with np.load("{material}/source.npz") as source:
    images, labels = source["images"][:100], source["labels"][:100]
weights = np.random.default_rng(0).normal(size=(768, 10)).astype(np.float32)
corruptions.evaluate(
    lambda batch: np.asarray(batch).reshape(len(batch), -1) @ weights, images, labels, severity=(0.5, 1),
    corruptions=("noc/contrast", "noc/hue"), path="{case}/out", progress=False
)
"""

SCENARIOS = {
    "evaluate": Scenario(code=_EVALUATE),
    "write_npy": Scenario(f"{_WRITE} --source={{material}}/source.npz --layout=npy"),
    "write_folders": Scenario(f"{_WRITE} --source={{material}}/tree --preprocess=resize --size=16 --layout=folders"),
    "write_shards": Scenario(f"{_WRITE} --source={{material}}/source.npz --layout=webdataset"),
    "train": Scenario(f"train.py --config=configs/aug.py:noc/border {_TRAINED}"),
    "eval": Scenario(
        "eval.py --config.eval.corruptions=('noc/border','noc/hue') --config.eval.severity=random --workdir={case}/work "
        "--config.eval.batch_size=40",
        start=("train",),
    ),
    "stored": Scenario(
        "eval.py --config.eval.stored={case}/out --config.eval.batch_size=200 --workdir={case}/work",
        start=("train", "write_npy"),
    ),
    "adapt": Scenario(
        "-m tools.adapt --source={case}/work --workdir={case}/adapted --config.adapt.scheme= --config.adapt.images=64 "
        "--config.adapt.batch_size=32",
        start=("train",),
    ),
    "streams": Scenario(
        "-m tools.streams --workdir={case}/work --streams=continual,mixed --methods=source,bn1 --severity=1 "
        "--corruptions=noc/border,noc/hue --batch=40 --images=80",
        start=("train",),
    ),
    "schemes": Scenario(
        f"-m tools.scheme_study --config=configs/default.py {_TRAINED} --config.study.schemes=('standard','patch_gaussian') "
        "--config.study.seeds=(0,) --config.eval.corruptions=('noc/hue',) --config.eval.severity=1"
    ),
    "overlap": Scenario(f"overlap.py --config=configs/default.py {_TRAINED} --config.study.corruptions={_PAIR}"),
    "select": Scenario("select_noc.py --overlap={material}/overlap.csv --sweep --out={case}/benchmark.json"),
    "msd": Scenario(
        f"-m tools.msd --config=configs/msd.py --workdir={{case}}/work --config.msd.corruptions={_PAIR} --config.msd.severity=1 "
        "--config.msd.schemes=('standard','patch_gaussian') --config.msd.images=8 "
        "--config.msd.transforms=20 --config.msd.draws=4 --config.msd.halves=2",
        start=("overlap",),
    ),
    "calibrate": Scenario(
        f"-m tools.calibrate --config.calibrate.corruptions={_PAIR} --config.calibrate.images=120 "
        "--config.eval.batch_size=120 --workdir={case}/work",
        start=("overlap",),
    ),
    "cbar": Scenario("-m tools.cbar --step=select --scan={material}/scan.npz --target=26 --out={case}/chosen.json"),
    "tables": Scenario("-m tools.tables {case}/work --out={case}/table", start=("overlap",)),
    "report": Scenario("-m tools.report --workdir={case}/work --nosamples", start=("overlap",)),
    "confidence": Scenario(
        "-m tools.confidence --workdir={case}/out --out={case}/confidence --resamples=10", start=("evaluate",)
    ),
    "strength": Scenario(
        "-m tools.strength --benchmark=imagenet_c_extra --size=16 --images=4 --out={case}/strength.md"
    ),
}
