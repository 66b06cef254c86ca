"""Folders of cases: material, the files that each undisturbed command leaves, and the current case."""

import hashlib
import json
import pathlib
import shutil
import subprocess

import numpy as np

from tests.torture import commands, comparing, scenarios
from tests.torture.scenarios import SCENARIOS


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
        first = comparing.snapshot(self.case)
        seconds = self._once(name)
        found = comparing.snapshot(self.case)
        if found != first:
            raise RuntimeError(f"{name} twice: {comparing.differences(found, first)}")
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
    folders = (
        "analysis",
        "configs",
        "corruptions",
        "data",
        "evaluation",
        "models",
        "projects",
        "runtime",
        "tools",
        "training",
    )
    paths = [path for folder in folders for path in (commands.ROOT / folder).rglob("*.py")]
    paths += [*commands.ROOT.glob("*.py"), pathlib.Path(scenarios.__file__)]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
