"""Writes docs/devices.md from the JSONs in benchmarks/results/devices.

python -m benchmarks.device.page
"""

from runtime import command  # isort: skip

import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.device import pixels
from benchmarks.timing import columns_of, markdown
from runtime import artifacts, files

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MODELS = {"NVIDIA H200": "h200", "TPU v5 lite": "tpu_v5e", "TPU v5e": "tpu_v5e", "TPU v4": "tpu_v4"}
RATE = "images/s by the model"
Record = Mapping[str, Any]
_TOP = """\
# Devices

Each column is a machine that measured itself with one command, `python -m benchmarks.device`. This page is made from the JSONs
in `benchmarks/results/devices` by `python -m benchmarks.device.page`. Every call is repeated 20 times, or for a second and at
least 3 times, behind a warm-up; its result is waited for. The median counts; the JSONs hold the quartiles and the memory too.
`of the model` is the measured rate divided by the rate that the chip's compiler predicts ([tables](compiled.md)), where there
is a table.
"""
_CORRUPTIONS = "Severities are mixed within a batch. Batches of {batches}. Median of images/s: {medians}."
_TRAINING = """\
Steps on random images. `corrupted`: half of each batch goes through zoom_blur before. `loop`: `train.py` with all that it does
around the steps. `several`: several models at once."""
_EVALUATION = """\
Answers of a network, under gaussian_noise (`corrupted`) or without corruption. `msd`: features of AugMix's transforms, an image
under a transform counts as one. `corrupt_each`: images of as many sizes, one after another."""
_CIFAR10 = """\
`configs/fast_cifar10.py`: the variant `gpu` aims at 94 %, `cpu` is a small network of 4 epochs. Medians over the seeds: seconds of the
whole training, and without compilation, at the median rate of the blocks after the first."""
_PIXELS = """\
Cases (corruption, severity, size) against the pixels of a CPU. The tolerance: below 1 value in 10,000 differs by one level, below 1
in 1,000 by more (isolated pixels)."""
_OWN = """\
## Add your device

```
# again until it says that all are measured
python -m benchmarks.device --minutes=8 --out=runs/device --data_dir=TFDS
cp runs/device/*.json benchmarks/results/devices/
python -m benchmarks.device.page
```

Then open a pull request with the JSON and this page. `TFDS` is the folder of the tfds datasets, with `cifar10`; without it the
pieces of CIFAR-10 fail and the others stand. Measure a committed revision on a machine that does nothing else. For a machine without
network, `python -m benchmarks.device.pack --tfds=TFDS` makes a folder to copy there; the machine needs Python 3.12 on Linux x86-64
with JAX for its device, Flax, Optax, Orbax and Chex.
"""


def page(records: Sequence[Record], results: pathlib.Path = RESULTS) -> str:
    """Renders the page from the contents of the JSONs and from `results`, the folder of the compilers' tables."""
    parts = [_TOP, _machines(records) if records else "No device is measured yet.\n"]
    if all(record["identity"]["platform"] == "cpu" for record in records):
        parts.append("Accelerators are not yet measured.\n")
    for size in dict.fromkeys(name.split("/")[0] for name in _names(records, "corruptions/")):
        side, dtype = size.split("_")
        groups = {label(r): list(_pieces(r, f"corruptions/{size}/").values()) for r in records}
        rates = {name: [piece["images_per_second"] for piece in pieces] for name, pieces in groups.items() if pieces}
        medians = "; ".join(f"{name} {_number(statistics.median(found))}" for name, found in rates.items())
        batches = " or ".join(map(str, sorted({piece["batch"] for pieces in groups.values() for piece in pieces})))
        text = _CORRUPTIONS.format(batches=batches, medians=medians)
        parts.append(f"## Corruptions at {side}x{side}, {dtype}\n\n{text}\n")
        shape = f"{side}x{side}, batch {{batch}}" if dtype == "uint8" else "none"
        columns = {"images/s": _rate, "compile s": lambda piece: f"{piece['compile_seconds']:.1f}"}
        parts.append(_table(records, f"corruptions/{size}/", columns, results, "corruptions", shape))
    columns = {"batch": _batch, "images/s": _rate, "of the peak": _share}
    for part, text in (("training", _TRAINING), ("evaluation", _EVALUATION)):
        if table := _table(records, f"{part}/", columns, results, part, part.capitalize()):
            parts += [f"## {part.capitalize()}\n\n{text}\n", table]
    trained = ("device", "variant", "seeds", "accuracy", "seconds", "without compilation")
    compared = ("device", "cases", "values", "differ by a level", "by more", "worst", "within the tolerance")
    of_pieces = ("CIFAR-10", _CIFAR10, trained, _cifar10), ("Pixels", _PIXELS, compared, _pixels)
    for title, text, header, row in of_pieces:
        part = title.lower().replace("-", "") + "/"
        groups = [(label(record), list(_pieces(record, part).values())) for record in records]
        if rows := [[name, *row(found)] for name, found in groups if found]:
            parts += [f"## {title}\n\n{text}\n", markdown(header, rows)]
    return "\n".join([*parts, _OWN])


def label(record: Record) -> str:
    """Names a machine at the head of a column."""
    identity = record["identity"]
    return f"{identity['device']}, {identity['cores']} cores" if identity["platform"] == "cpu" else identity["device"]


def model_rates(device: str, kind: str, shape: str, results: pathlib.Path) -> dict[str, float]:
    """Reads the rates that a chip's compiler predicts: {program: images/s}, empty without a table in `results`.

    The device is called as JAX names it. `kind` is `corruptions`, `training` or `evaluation`, `shape` a text of the
    table's title, such as `224x224, batch 256`.
    """
    target = next((name for start, name in MODELS.items() if device.startswith(start)), None)
    for path in sorted(results.glob(f"compiled_{target}_{kind}*.md"), key=lambda path: ("_O1" in path.stem, path.stem)):
        text = path.read_text()
        if target and shape in text.partition("\n")[0] and f"| {RATE} |" in text:
            cells = columns_of(text, "program", RATE)
            rates = {name: float(rate.replace(",", "")) for name, rate in cells if rate[:1].isdigit()}
            if kind == "corruptions":
                return rates
            # Networks: NAME:SIDE:BATCH:MODELSxCHIPS; a network's first row has one model on one chip.
            return {name.rsplit(":", 2)[0]: rate for name, rate in reversed(rates.items())}
    return {}


def _machines(records):
    rows = []
    for record in records:
        identity, limits = record["identity"], record.get("limits", {})
        power = f"{limits['power.limit']} of {limits['power.max_limit']}, {limits['clocks.max.sm']}" if limits else "-"
        versions = f"JAX {identity['versions']['jax']}, Python {identity['versions']['python']}"
        devices = f"{identity['devices']} ({identity['platform']})"
        driver = limits.get("driver_version", identity["driver"])
        last = max((piece["written"][:10] for piece in record["pieces"].values()), default="-")
        found = [devices, driver, power, versions, artifacts.short(identity["revision"]), last, len(record["pieces"])]
        rows.append([label(record), *found])
    header = "device", "JAX devices", "driver", "power limit, clock", "versions", "revision", "last measured", "pieces"
    reduced = [(label(record), record["identity"]["reduced"]) for record in records]
    lines = [f"- {name} measured less: {'; '.join(sentences)}.\n" for name, sentences in reduced if sentences]
    lines += [f"- {label(r)}, `{name}` failed: {text}\n" for r in records for name, text in r["failed"].items()]
    return "\n".join([markdown(header, rows), *(["".join(lines)] if lines else [])])


def _pieces(record, prefix):
    """{rest of the name: piece} of the pieces whose name starts so."""
    return {name.removeprefix(prefix): piece for name, piece in record["pieces"].items() if name.startswith(prefix)}


def _names(records, prefix):
    return list(dict.fromkeys(name for record in records for name in _pieces(record, prefix)))


def _table(records, prefix, columns, results, kind, shape):
    """A table with a group of columns for each machine, without columns that are empty; "" where nothing is measured."""
    names = _names(records, prefix)
    header, rows = ["work"], [[name] for name in names]
    for record in records:
        found = _pieces(record, prefix)
        batch = next((piece.get("batch") for piece in found.values()), 0)
        model = model_rates(record["identity"]["device"], kind, shape.format(batch=batch), results)
        for title, cell in columns.items():
            cells = {title: [cell(found[name]) if name in found else "-" for name in names]}
            if title == "images/s" and model:
                both = found.keys() & model.keys()
                ratio = {name: f"{found[name]['images_per_second'] / model[name]:.2f}" for name in both}
                cells["of the model"] = [ratio.get(name, "-") for name in names]
            for title, column in cells.items():
                if set(column) - {"-"}:
                    header.append(f"{label(record)}: {title}")
                    rows = [[*row, value] for row, value in zip(rows, column)]
    return markdown(header, rows) if rows else ""


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _rate(piece):
    return _number(piece["images_per_second"])


def _share(piece):
    return f"{100 * piece['share_of_peak']:.0f} %" if "share_of_peak" in piece else "-"


def _batch(piece):
    models = f"{piece['models']} models x " if "models" in piece else ""
    return f"{models}{piece['batch']} {piece['dtype']}" if "batch" in piece else "-"


def _cifar10(seeds):
    accuracy = [100 * piece["accuracy"] for piece in seeds]
    error = f" ± {statistics.stdev(accuracy) / len(accuracy) ** 0.5:.2f}" if len(accuracy) > 1 else ""
    seconds = (f"{statistics.median(piece[key] for piece in seeds):.1f}" for key in ("seconds", "seconds_later"))
    return [seeds[0]["variant"], len(seeds), f"{statistics.mean(accuracy):.2f} %{error}", *seconds]


def _pixels(found):
    cases, number, one, more = (sum(piece[key] for piece in found) for key in ("cases", "values", "by_one", "by_more"))
    worst = max(found, key=lambda piece: (piece["by_more"], piece["by_one"]))
    named = f"{worst['name']}, by {worst['largest']}" if worst["largest"] else "-"
    return [cases, f"{number:,}", one, more, named, "yes" if pixels.within(one, more, number) else "**no**"]


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Reads the JSONs of a folder, CPUs first."""
    records = [files.read_json(path) for path in sorted(folder.glob("*.json"))]
    return sorted(records, key=lambda record: record["identity"]["platform"] != "cpu")


def main(argv):
    command.refuse_positional(argv)
    files.write_atomically(flags.FLAGS.out, page(read(RESULTS / "devices")))
    print(f"written to {flags.FLAGS.out}")


if __name__ == "__main__":
    flags.DEFINE_string("out", str(ROOT / "docs" / "devices.md"), "The page.")
    command.run(main)
