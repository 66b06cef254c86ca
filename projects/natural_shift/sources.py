"""Tables of models: accuracies on clean images, under corruptions and under natural shifts, from three sources.

The ImageNet testbed: github.com/modestyachts/imagenet-testbed, MIT (Taori, Dave, Shankar, Carlini, Recht, Schmidt, NeurIPS
2020), robustness_top1s.csv with 338 models under 213 settings, and a table `model,type` made of plotting/model_types.py.
PyTorch Image Models: github.com/huggingface/pytorch-image-models, Apache-2.0, results/results-SET.csv for each test set, none
of them corrupted. Our own workdirs, evaluated with config.eval.natural.
"""

import csv
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis import answers, frames
from analysis.errors.reference import Conditions, unlike
from analysis.frames import CLEAN, NATURAL, OF_CLASSES, RANDOM, STANDARD, is_corruption
from analysis.references import BENCHMARKS, PREFIX, qualified_members
from runtime.log import log

PREFERRED = ("imagenet_v2", "imagenet_a", "imagenet_r", "imagenet_sketch", "objectnet", "cifar10_1", "cinic10")
"""Default shifts; the others are videos, new labels or variants."""
FEWEST = 4  # models that a correlation takes
KINDS = ("on-disk", "in-memory")
_TESTBED = {  # shift -> (its column, the column of clean images of the same classes)
    "imagenet_v2": ("imagenetv2-matched-frequency-format-val", "val"),
    "imagenet_a": ("imagenet-a", "val-on-imagenet-a-classes"),
    "imagenet_r": ("imagenet-r", "val-on-imagenet-r-classes"),
    "imagenet_sketch": ("imagenet-sketch", "val"),
    "objectnet": ("objectnet-1.0-beta", "val-on-objectnet-classes"),
    "vid_robust": ("imagenet-vid-robust_pm0", "val-on-vid-robust-classes"),
    "ytbb_robust": ("ytbb-robust_pm0", "val-on-ytbb-robust-classes"),
}
_PGD = ["pgd.l2.eps0.1", "pgd.l2.eps0.5", "pgd.linf.eps0.5", "pgd.linf.eps2"]
_OTHER_DATA = "aws|batch64|subsample"  # in names of models that no line is fitted to
_TIMM = {  # shift -> (its file, the file of clean images of the same classes)
    "imagenet_v2": ("imagenetv2-matched-frequency", "imagenet"),
    "imagenet_a": ("imagenet-a", "imagenet-a-clean"),
    "imagenet_r": ("imagenet-r", "imagenet-r-clean"),
    "imagenet_sketch": ("sketch", "imagenet"),
    "imagenet_real": ("imagenet-real", "imagenet"),
}
_ENSEMBLE = "+ensemble="  # its members count already
_ADAPTED = "+bn=test"  # in names of models that were trained on the test's images


@dataclasses.dataclass(frozen=True)
class Table:
    """Accuracies of N models in percent; NaN where unknown.

    `accuracy` has a row for each model, and columns `clean`, `natural/SHIFT`, `clean/SHIFT` (clean images of the shift's
    classes), and the corruptions, averaged over severities.
    """

    source: str  # their origin, for people
    accuracy: pd.DataFrame
    standard: np.ndarray  # bool [N], models trained only on the usual images; lines are fitted to them
    shown: np.ndarray  # bool [N], models whose effective robustness is compared

    def __post_init__(self):
        _once(self.accuracy.index, self.source)
        low, high = self.accuracy.min(), self.accuracy.max()
        for name in self.accuracy.columns[(low < 0) | (high > 100)]:
            raise ValueError(
                f"{self.source}: expected accuracies in percent for {name}, found {low[name]:g} to {high[name]:g}"
            )

    def __getitem__(self, name: str) -> np.ndarray:
        """Gives a column [N]."""
        return self.accuracy[name].to_numpy(float)

    def shift(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Gives (accuracy under a natural shift, accuracy on clean images of the same classes), [N] each."""
        return self[NATURAL + name], self[OF_CLASSES + name]

    @property
    def natural(self) -> list[str]:
        """Names of the natural shifts."""
        return [name.removeprefix(NATURAL) for name in self.accuracy if name.startswith(NATURAL)]

    @property
    def synthetic(self) -> list[str]:
        """Names of the corruptions."""
        return list(filter(is_corruption, self.accuracy))

    def chosen(self, models: Sequence[str]) -> "Table":
        """Keeps these models, in the order of the table; raises ValueError where the table lacks one."""
        self._check("models of the table", sorted(set(models) - set(self.accuracy.index)), "others")
        keep = self.accuracy.index.isin(models)
        return Table(self.source, self.accuracy[keep], self.standard[keep], self.shown[keep])

    def shifts(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Checks names of natural shifts; without names, lists the `PREFERRED` ones of the table.

        Raises ValueError where the table lacks one, or has none.
        """
        known = self.natural
        names = tuple(names or (name for name in PREFERRED if name in known))
        _once(names, self.source, "natural shift")
        found = ", ".join(known) or "none; eval.py --config.eval.natural=... measures them"
        self._check("natural shifts", [name for name in names or PREFERRED if name not in known], found)
        return names

    def members(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Lists the corruptions of a synthetic benchmark: corruptions, and the members of benchmarks.

        Without names: the members of ImageNet-C if the table has all of them, else all its corruptions. Raises
        ValueError where the table lacks one.
        """
        known, usual = self.synthetic, qualified_members("imagenet_c")
        if not names:
            return usual if set(usual) <= set(known) else tuple(known)
        import corruptions  # here, because it imports JAX

        benchmarks = corruptions.benchmarks()
        listed = [m for name in names for m in (corruptions.names(name) if name in benchmarks else (name,))]
        self._check("corruptions", [name for name in listed if name not in known], ", ".join(known) or "none")
        return tuple(dict.fromkeys(listed))

    def _check(self, what, missing, found):
        if missing:
            raise ValueError(f"{self.source}: expected {what}, {', '.join(missing)}, found {found}")

    def complete(self, shifts: Sequence[str], members: Sequence[str]) -> np.ndarray:
        """Marks the models that have all these accuracies, bool [N]; raises ValueError for fewer than 4."""
        columns = [CLEAN, *members, *(prefix + name for prefix in (NATURAL, OF_CLASSES) for name in shifts)]
        complete = self.accuracy[columns].notna().all(axis=1).to_numpy()
        if complete.sum() < FEWEST:
            raise ValueError(
                f"{self.source}: expected at least {FEWEST} models with accuracies under {', '.join(shifts)} and every "
                f"corruption, found {complete.sum()} of {len(complete)}; name fewer shifts, or evaluate more models"
            )
        return complete

    def mean(self, members: Sequence[str]) -> np.ndarray:
        """Averages the accuracies over corruptions: [N], NaN where one is unknown."""
        return np.mean([self[name] for name in members], axis=0)


def read_testbed(path: pathlib.Path, types: pathlib.Path | None = None, kind: str = "on-disk") -> Table:
    """Reads the testbed's table, robustness_top1s.csv.

    `types` is a CSV file with the header `model,type`; without it no model counts as standard. Lines are fitted to
    models of type `standard` whose name contains none of `aws`, `batch64`, `subsample`; shown are models of other types
    without `subsample`. `kind` is the kind of ImageNet-C: `on-disk`, the released JPEG files, or `in-memory`, without
    their compression (and glass_blur). Raises FileNotFoundError, or ValueError for another table or a model without a
    type.
    """
    if kind not in KINDS:
        raise ValueError(f"expected a kind of ImageNet-C of {', '.join(KINDS)}, found {kind!r}")
    raw = read_csv(path, "model").set_index("model")
    _once(raw.index, path)
    shown = ["val", *(column for pair in _TESTBED.values() for column in pair), "stylized_imagenet", "greyscale"]
    shown += [column for column in raw if column.startswith("imagenet-c.")]
    raw = raw[[column for column in raw if column in (*shown, *_PGD)]]
    # Attacks may leave every model below 1 %, so these columns may look like fractions.
    raw = raw.apply(lambda column: _percent(column, f"{path}, column {column.name}", column.name not in _PGD))
    pairs = {name: pair for name, pair in _TESTBED.items() if set(pair) <= set(raw)}
    if "val" not in raw or not pairs:
        expected = ", ".join(column for column, _ in _TESTBED.values())
        raise ValueError(f"{path}: expected the columns val and {expected}, found none")
    columns = {CLEAN: raw["val"]}
    for name, pair in pairs.items():
        columns |= {NATURAL + name: raw[pair[0]], OF_CLASSES + name: raw[pair[1]]}
    for name in (*BENCHMARKS["imagenet_c"], *BENCHMARKS["imagenet_c_extra"]):
        settings = [f"imagenet-c.{name}.{severity}_{kind}" for severity in range(1, 6)]
        if set(settings) <= set(raw):
            columns[PREFIX["imagenet_c"] + name] = raw[settings].mean(axis=1, skipna=False)
    columns |= {name: raw[name] for name in ("stylized_imagenet", "greyscale") if name in raw}
    if set(_PGD) <= set(raw):
        columns["pgd"] = raw[_PGD].mean(axis=1, skipna=False)
    type_of = read_types(types) if types else {}
    if lacking := [name for name in raw.index if types and name not in type_of]:
        raise ValueError(f"{types}: expected a type of every model, found none of {', '.join(lacking[:5])}")
    usual = np.array([type_of.get(name) == STANDARD for name in raw.index])
    fitted = usual & ~raw.index.str.contains(_OTHER_DATA)
    shown = ~usual & ~raw.index.str.contains("subsample")
    return Table(f"{path.name}, ImageNet-C {kind}", pd.DataFrame(columns), fitted, shown)


def read_timm(folder: pathlib.Path, types: Mapping[str, str] | None = None) -> Table:
    """Reads the result files of timm in a folder: results-imagenet.csv and some of the others.

    A model that was tested at two image sizes counts once, at the size that the file of clean images lists last: two lines
    of one model are not independent. `types` is {model: type}; lines are fitted to models of type `standard`. Raises
    FileNotFoundError without a table of clean images or of any shift; ValueError for a broken table.
    """
    tables = {"imagenet": _timm(folder, "imagenet")}
    known = {path.stem.removeprefix("results-") for path in timm_files(folder)}
    pairs = {name: pair for name, pair in _TIMM.items() if set(pair) <= known}
    if not pairs:
        raise FileNotFoundError(f"expected results of natural shifts in {folder}, found none of {', '.join(_TIMM)}")
    tables |= {part: _timm(folder, part) for pair in pairs.values() for part in pair if part not in tables}
    sizes = dict(tables["imagenet"].index)  # {model: size}; the last one stays
    chosen = pd.MultiIndex.from_tuples(sizes.items())
    of_models = {part: rows.reindex(chosen).to_numpy() for part, rows in tables.items()}
    columns = {CLEAN: of_models["imagenet"]}
    for name, (shifted, same_classes) in pairs.items():
        columns |= {NATURAL + name: of_models[shifted], OF_CLASSES + name: of_models[same_classes]}
    standard = np.array([(types or {}).get(model) == STANDARD for model in sizes])
    return Table(f"timm results in {folder.name}", pd.DataFrame(columns, index=list(sizes)), standard, ~standard)


def timm_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists the files in a folder that `read_timm` reads."""
    names = dict.fromkeys(["imagenet", *(name for pair in _TIMM.values() for name in pair)])
    return [path for name in names if (path := folder / f"results-{name}.csv").is_file()]


def _timm(folder, name):
    """Top-1 in percent by model and image size; the last line of a pair counts, and a warning names such a pair."""
    path, keys = folder / f"results-{name}.csv", ["model", "img_size"]
    rows = read_csv(path, *keys, "top1")
    for (model, size), number in rows.value_counts(keys, sort=False).items():
        if number > 1:
            log.warning("%s: found %s at %s pixels %d times, the last line counts.", path, model, size, number)
    rows = rows.drop_duplicates(keys, keep="last")
    return _percent(rows.set_index(keys)["top1"], f"{path}, column top1")


def read_workdirs(folders: Sequence[pathlib.Path], types: Mapping[str, str] | None = None) -> Table:
    """Reads the models of workdirs that eval.py evaluated with config.eval.natural.

    A model is called FOLDER/MODEL/SEED, with the last part of its workdir's name. Clean images of a shift's classes are all
    clean images where the evaluation has no others. Models adapted to the test's images, and ensembles, are left out.

    Args:
      folders: folders with different names.
      types: {name: type}; lines are fitted to models of type `standard`. None takes the models called `standard`, which were
        trained without corruption or scheme.

    Raises:
      SettingsError: a module that the evaluation imported is not found.
      FileNotFoundError, ValueError: no answers or damaged ones, folders of the same name, no model with answers to clean
        images, or conditions or severities that differ.
    """
    names = [folder.resolve().name for folder in folders]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"expected workdirs in folders of different names, found {', '.join(names) or 'none'}")
    parts, first = [], None
    for folder, name in zip(folders, names, strict=True):
        found = answers.read(folder)
        conditions = Conditions.read(found.conditions)
        if different := unlike(first := first or conditions, conditions):
            listed = "; ".join(different.values())
            raise ValueError(
                f"expected workdirs measured under the same conditions, found {folder} unlike {folders[0]}: {listed}"
            )
        part = frames.of_counts(found.counts)  # of models that were shown clean images
        if part.empty:
            raise ValueError(f"{folder}: expected models evaluated on clean images, found none; run eval.py there")
        parts.append(part.assign(name=[f"{name}/{model}/{seed}" for model, seed in zip(part.model, part.seed)]))
    counts = pd.concat(parts)
    for mark in (_ADAPTED, _ENSEMBLE):
        counts = counts[~counts.model.str.contains(mark, regex=False)]
    counts = counts.assign(percent=100 * counts.correct / counts.total, severity=counts.severity.map(str))
    levels = counts.groupby(["corruption", "name"], sort=False).severity.agg(lambda values: ", ".join(sorted(values)))
    for condition, of_models in levels.groupby("corruption", sort=False):
        first, *others = of_models.droplevel("corruption").drop_duplicates().items()
        if (shown := first[1].split(", "))[1:] and RANDOM in shown:
            raise ValueError(
                f"expected {condition} at levels or at random severities, found both, {first[1]}; evaluate each in a copy of "
                "the workdir"
            )
        if others:
            found = f"{first[1]} for {first[0]} and {others[0][1]} for {others[0][0]}"
            raise ValueError(f"expected {condition} at the same severities for all models, found {found}")
    by_condition = counts.groupby(["name", "corruption"], sort=False).percent
    accuracy = by_condition.agg(lambda values: np.mean(values.to_numpy())).unstack()
    accuracy = accuracy.reindex(index=counts.name.unique(), columns=counts.corruption.unique())
    for condition in [name for name in accuracy if name.startswith(NATURAL)]:
        clean = OF_CLASSES + condition.removeprefix(NATURAL)
        accuracy[clean] = accuracy[clean if clean in accuracy else CLEAN]
    if types is None:
        types = dict(zip(counts.name, counts.model, strict=True))
    standard = np.array([types.get(name) == STANDARD for name in accuracy.index])
    return Table(f"{len(names)} workdirs" if len(names) > 1 else names[0], accuracy, standard, ~standard)


def read_csv(path: pathlib.Path, *keys: str) -> pd.DataFrame:
    """Reads a CSV file as text, with the columns `keys` and others.

    Raises FileNotFoundError; ValueError where a column is missing or there twice, the table is empty, or a line has
    another width.
    """
    if not path.is_file():
        raise FileNotFoundError(f"expected a table at {path}, found no file")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file, strict=True)
        try:
            header, *rows = reader
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: expected a CSV table, found {error}") from None
    if not rows or not set(keys) <= set(header):
        raise ValueError(f"{path}: expected lines with the columns {', '.join(keys)}, found {header}")
    _once(header, path, "column")
    for number, row in enumerate(rows, 2):  # pandas would fill up short rows
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: expected {len(header)} fields, found {len(row)}")
    return pd.DataFrame(rows, columns=header, dtype=str)


def read_types(path: pathlib.Path) -> dict[str, str]:
    """Reads a table `model,type`: {model: type}; ValueError for a model that appears twice."""
    types = read_csv(path, "model", "type").set_index("model")["type"]
    _once(types.index, path)
    return types.to_dict()


def _once(names, place, what="model"):
    if (twice := pd.Index(names)[pd.Index(names).duplicated()]).size:
        raise ValueError(f"{place}: expected every {what} once, found {twice[0]} again")


def _percent(column, place, refuse_fractions=True):
    """Text as float64; empty cells are NaN. Raises ValueError for text, other ranges, and columns that hold fractions."""
    try:
        numbers = column.replace("", "nan").astype(float)
    except ValueError as error:
        raise ValueError(f"{place}: expected numbers, found {error}") from None
    if len(outside := numbers[(numbers < 0) | (numbers > 100)]):
        raise ValueError(f"{place}: expected percent from 0 to 100, found {outside.iloc[0]:g}")
    if refuse_fractions and 0 < numbers.max() <= 1:
        raise ValueError(f"{place}: expected percent, found {numbers.max():g} at most, a fraction; multiply it by 100")
    return numbers
