"""Draws the draft's three figures of networks under ImageNet-C from its printed numbers, and ours beside them.

    python -m projects.structural.figures --out=FOLDER
    python -m projects.structural.figures --out=FOLDER runs/imagenet/*

Writes

    standard.png, .pdf      mCE and relative mCE of AlexNet, SqueezeNet, VGGs and ResNets against their clean error (Figure 2)
    multi_scale.png, .pdf   CE of the three noises of ResNet-50, MSDNet and Multigrid (Figure 3)
    larger.png, .pdf        mCE and relative mCE of DenseNets and ResNeXts against their clean error (Figure 4)

Workdirs, or folders of `corruptions.evaluate`, are those of one network each, named as the network; all 15 corruptions
at five severities. AlexNet's published errors are the reference unless `--reference` names another. The relative mCE of
the larger networks is of a later draft.
"""

from runtime import command  # isort: skip

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import figures
from analysis.errors import joint, sets
from analysis.errors.printed import PRINTED
from analysis.errors.reference import LABEL, REFUSE
from analysis.errors.scores import LEVELS
from analysis.frames import CLEAN
from analysis.references import IMAGENET_C

_DRAFT = "Benchmarking Corruption and Structural Robustness ("
MEASURES = {"CE": "mCE", "relative_CE": "relative mCE"}
NOISES = IMAGENET_C[:3]
FIGURES = {
    "standard": ("alexnet", "squeezenet1_1", "vgg11", "vgg19", "vgg19_bn", "resnet18", "resnet50"),
    "multi_scale": ("resnet50", "msdnet", "multigrid34"),
    "larger": ("resnet50", "densenet121", "densenet161", "resnext50", "resnext101_64x4d"),
}
"""{file: its networks, as config.model.name calls them}."""


class Network(NamedTuple):
    """The numbers of a network in a figure, in percent."""

    clean: float  # error on clean images
    means: Mapping[str, float]  # {measure: mean over the 15 corruptions}
    noises: Mapping[str, float]  # {noise: CE}


def published() -> dict[str, Network]:
    """Collects {network: the numbers that the draft prints}; noises read off its figure win over whole percent."""
    found: dict[str, Network] = {}
    for table in (table for table in PRINTED if table.source.startswith(_DRAFT)):
        for name, (clean, *values, mean) in table.rows.items():
            cells = dict(zip(table.columns, values, strict=True))
            noises = {noise: float(cells[noise]) for noise in NOISES if cells[noise] and table.measure == "CE"}
            before = found.get(name, Network(float(clean), {}, {}))
            found[name] = Network(
                before.clean, {table.measure: float(mean)} | before.means, {**before.noises, **noises}
            )
    return found


def measured(folders: Sequence[Path], reference: str = "", mismatch: str = REFUSE) -> dict[str, Network]:
    """Reads {network: its numbers} from evaluated folders, one network in each, called as the folder.

    Raises ValueError where a folder has several networks, or none of the numbers of a figure.
    """
    if not folders:
        return {}
    evaluated = joint.read_all(folders)
    table, _ = sets.by_corruption(evaluated, reference, mismatch)
    labels, found = sets.labelled(evaluated), {}
    for workdir in evaluated:
        if len(labels[workdir.name]) != 1:
            raise ValueError(f"expected one network in {workdir.folder}, found {', '.join(labels[workdir.name])}")
        [label] = labels[workdir.name].values()
        rows = table[table.model == label]
        clean = rows[rows.benchmark == CLEAN]["mean"]
        of = rows[(rows.benchmark == "imagenet_c") & (rows.severities == LEVELS)].set_index(["measure", "corruption"])
        means = {m: float(of["mean"].get((m, "mean"), float("nan"))) for m in MEASURES}
        noises = {noise: float(of["mean"].get(("CE", f"imagenet_c/{noise}"), float("nan"))) for noise in NOISES}
        if clean.empty or of.empty:
            raise ValueError(
                f"expected errors on clean images and all of imagenet_c at levels in {workdir.folder}, found none"
            )
        found[workdir.folder.name] = Network(float(clean.iloc[0]), means, noises)
    return found


def against_error(networks: Iterable[str], theirs: Mapping[str, Network], ours: Mapping[str, Network]) -> Figure:
    """Draws mCE and relative mCE against the clean error: circles as printed, crosses as measured."""
    figure, [axes] = figures.panels(1, 1, (4.2, 3.2), 4.2, 0.3)
    for measure, colour in zip(MEASURES, (figures.BLUE, figures.ORANGE), strict=True):
        for source, marker, label in ((theirs, "o", "printed"), (ours, "x", "ours")):
            shown = {name: source[name] for name in networks if measure in source.get(name, _NONE).means}
            if shown:
                x, y = [one.clean for one in shown.values()], [one.means[measure] for one in shown.values()]
                axes.scatter(x, y, s=16, c=colour, marker=marker, label=f"{MEASURES[measure]}, {label}")
            if source is theirs:
                for name, one in shown.items():
                    axes.annotate(
                        name, (one.clean, one.means[measure]), (3, 3), textcoords="offset points", fontsize=5.5
                    )
    axes.set_xlabel("error on clean images (%)", fontsize=8)
    axes.set_ylabel("mean over the 15 corruptions (%)", fontsize=8)
    axes.legend(fontsize=6, frameon=False)
    return figure


def noise_bars(networks: Sequence[str], theirs: Mapping[str, Network], ours: Mapping[str, Network]) -> Figure:
    """Draws the CE of the three noises as bars: filled as printed, hatched as measured."""
    figure, [axes] = figures.panels(1, 1, (4.2, 2.8), 4.2, 0.3)
    series = [(name, source, hatch) for name in networks for source, hatch in ((theirs, None), (ours, "///"))]
    series = [one for one in series if one[1].get(one[0], _NONE).noises]
    for k, (name, source, hatch) in enumerate(series):
        _bars(axes, k, len(series), figures.COLOURS[networks.index(name)], hatch, source[name].noises)
        axes.containers[-1].set_label(f"{name}, {'ours' if hatch else 'printed'}")
    axes.set_xticks(range(len(NOISES)), [noise.replace("_", " ") for noise in NOISES])
    axes.set_ylabel("CE (%)", fontsize=8)
    figure.legend(fontsize=6, frameon=False, loc="outside upper center", ncols=3)
    return figure


_NONE = Network(float("nan"), {}, {})


def _bars(axes: Axes, k, number, colour, hatch, noises):
    width = 0.8 / number
    places = [place - 0.4 + (k + 0.5) * width for place in range(len(NOISES))]
    heights = [noises.get(noise, float("nan")) for noise in NOISES]
    axes.bar(places, heights, width, color="white" if hatch else colour, edgecolor=colour, hatch=hatch)


def write(out: Path, folders: Sequence[Path] = (), reference: str = "", mismatch: str = REFUSE) -> list[Path]:
    """Writes the three figures into a folder; returns their paths."""
    theirs, ours = published(), measured(folders, reference, mismatch)
    known = dict.fromkeys(name for names in FIGURES.values() for name in names)
    others = [name for name in ours if name not in known]
    if others and len(others) == len(ours):
        raise ValueError(
            f"expected folders called as networks of the draft, {', '.join(known)}, found {', '.join(others)}"
        )
    if others:
        print(f"in no figure: {', '.join(others)}")
    written = []
    for stem, networks in FIGURES.items():
        draw = noise_bars if stem == "multi_scale" else against_error
        written += figures.save(draw(networks, theirs, ours), out / stem)
    return written


def main():
    parser = command.Arguments(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the figures")
    parser.add_argument(
        "--reference", default="", help="reference of the CE, as of tools.tables; '' is AlexNet's published errors"
    )
    parser.add_argument(
        "--mismatch", choices=(REFUSE, LABEL), default=REFUSE, help="what to do where its conditions differ"
    )
    parser.add_argument("folders", nargs="*", type=Path, help="evaluated networks, each in a folder called as it")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print("written to " + ", ".join(map(str, write(given.out, given.folders, given.reference, given.mismatch))))


if __name__ == "__main__":
    with command.errors():
        main()
