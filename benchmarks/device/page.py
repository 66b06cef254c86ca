"""Writes docs/devices.md from the JSONs in benchmarks/results/devices.

python -m benchmarks.device.page
"""

import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.device import pixels
from benchmarks.tables import columns_of, markdown
from runtime import command, files

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MODELS = {"NVIDIA H200": "h200", "TPU v5 lite": "tpu_v5e", "TPU v5e": "tpu_v5e", "TPU v4": "tpu_v4"}
RATE = "images/s by the model"
_TOP = """\
# Devices

Each column is a machine that measured itself with one command, `python -m benchmarks.device`: the JSONs in
`benchmarks/results/devices`, rendered by `python -m benchmarks.device.page`.
Every call is repeated 20 times, or for a second and at least 3 times, behind a warm-up, and its result is waited for; the
median counts, the JSONs hold the quartiles too. Severities are mixed within a batch. `of the model` is the measured rate
divided by the one that the chip's compiler predicts ([tables](compiled.md)), where there is such a table.
"""
_OWN = """\
## Add your device

```
python -m benchmarks.device --minutes=8 --out=runs/device --data_dir=TFDS    # again until it says that all pieces are measured
cp runs/device/*.json benchmarks/results/devices/
python -m benchmarks.device.page
```

Then open a pull request with the JSON and this page. `TFDS` is the folder of the tfds datasets, with `cifar10`; without it the
part `CIFAR-10` fails and the others stand. Measure a committed revision on a machine that does nothing else. A machine without
network takes what `python -m benchmarks.device.pack --tfds=TFDS` puts together: it needs Python 3.12 on Linux x86-64 with JAX
for its device, Flax, Optax, Orbax and Chex.
"""


def page(records: Sequence[Mapping[str, Any]], results: pathlib.Path = RESULTS) -> str:
    """Renders the page.

    Args:
      records: contents of the JSONs.
      results: folder of the compilers' tables.
    """
    parts = [_TOP, _machines(records) if records else "No device is measured yet.\n"]
    if all(record["identity"]["platform"] == "cpu" for record in records):
        parts.append("Accelerators are not yet measured.\n")
    pieces = [name for record in records for name in record["pieces"] if name.startswith("corruptions/")]
    sizes = dict.fromkeys(name.split("/")[1] for name in pieces)
    parts += [_corruptions(records, size, results) for size in sizes]
    parts += [_training(records, results), _evaluation(records, results), _cifar10(records), _pixels(records), _OWN]
    return "\n".join(part for part in parts if part)


def label(record: Mapping[str, Any]) -> str:
    """Names a machine at the head of a column."""
    identity = record["identity"]
    return f"{identity['device']}, {identity['cores']} cores" if identity["platform"] == "cpu" else identity["device"]


def _machines(records):
    rows = []
    for record in records:
        identity, limits = record["identity"], record.get("limits", {})
        power = (
            f"{limits['power.limit']} of {limits['power.max_limit']}, {limits['clocks.max.sm']}"
            if limits
            else "not told"
        )
        devices = f"{identity['devices']} ({identity['platform']})"
        versions = f"JAX {identity['versions']['jax']}, Python {identity['versions']['python']}"
        driver = limits.get("driver_version", identity["driver"])
        dates = [piece["written"][:10] for piece in record["pieces"].values()]
        finished = f"{len(record['pieces'])}, {len(record['failed'])} failed"
        rows.append(
            [
                label(record),
                devices,
                driver,
                power,
                versions,
                identity["revision"][:12],
                max(dates, default="-"),
                finished,
            ]
        )
    header = ["device", "JAX devices", "driver", "power limit, clock", "versions", "revision", "measured", "pieces"]
    notes = [
        f"- {label(r)} measured less: {'; '.join(r['identity']['reduced'])}.\n"
        for r in records
        if r["identity"]["reduced"]
    ]
    failed = [f"- {label(r)}, `{name}`: {text}\n" for r in records for name, text in r["failed"].items()]
    return (
        markdown(header, rows)
        + "".join(["\n", *notes] if notes else [])
        + "".join(["\nFailed:\n\n", *failed] if failed else [])
    )


def model_rates(device: str, kind: str, shape: str, results: pathlib.Path) -> dict[str, float]:
    """Reads the rates that a chip's compiler predicts: {program: images/s}, empty without a table.

    Args:
      device: as JAX names it.
      kind: `corruptions`, `training` or `evaluation`.
      shape: text of the table's title, such as `224x224, batch 256`.
      results: folder of the tables.
    """
    target = next((name for start, name in MODELS.items() if device.startswith(start)), None)
    for path in sorted(results.glob(f"compiled_{target}_{kind}*.md"), key=lambda path: ("_O1" in path.stem, path.stem)):
        text = path.read_text()
        if target and shape in text.partition("\n")[0] and RATE in text:
            cells = columns_of(text, "program", RATE)
            return {name: float(value.replace(",", "")) for name, value in cells if value[:1].isdigit()}
    return {}


def _ratio(rate, model, name):
    """The cell of a ratio to the model's rate, in a list; none where the model has no table."""
    return [f"{rate / model[name]:.2f}" if rate and name in model else "-"] if model else []


def _rate(value):
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(records, first, names, cells_of):
    """A table with a group of columns for each machine; groups of a machine without any value are left out."""
    header, rows = [first], [[name] for name in names]
    for record in records:
        titles, cells = cells_of(record)
        if any(cell != "-" for name in names for cell in cells[name]):
            header += [f"{label(record)}: {title}" for title in titles]
            for row, name in zip(rows, names):
                row += cells[name]
    return markdown(header, rows) if len(header) > 1 else ""


def _corruptions(records, size, results):
    side, dtype = size.split("_")
    prefix = f"corruptions/{size}/"
    names = list(dict.fromkeys(k.removeprefix(prefix) for r in records for k in r["pieces"] if k.startswith(prefix)))

    def cells_of(record):
        pieces = {name: record["pieces"].get(prefix + name, {}) for name in names}
        batch = next((piece["batch"] for piece in pieces.values() if piece), 0)
        shape = f"{side}x{side}, batch {batch}" if dtype == "uint8" else "none"
        model = model_rates(record["identity"]["device"], "corruptions", shape, results)
        cells = {}
        for name, piece in pieces.items():
            rate = piece.get("images_per_second")
            cells[name] = [_rate(rate), *_ratio(rate, model, name), f"{piece['compile_seconds']:.1f}" if piece else "-"]
        return ["images/s", *["of the model"] * bool(model), "compile s"], cells

    found = [
        [r["pieces"][prefix + n]["images_per_second"] for n in names if prefix + n in r["pieces"]] for r in records
    ]
    medians = [f"{label(r)} {_rate(statistics.median(rates))}" for r, rates in zip(records, found) if rates]
    batches = sorted({p["batch"] for r in records for k, p in r["pieces"].items() if k.startswith(prefix)})
    text = f"Batches of {' or '.join(map(str, batches))}. Median of images/s: {'; '.join(medians)}.\n\n"
    return f"## Corruptions at {side}x{side}, {dtype}\n\n" + text + _table(records, "corruption", names, cells_of)


def _of(records, part, drop=()):
    names = dict.fromkeys(key.partition("/")[2] for r in records for key in r["pieces"] if key.startswith(f"{part}/"))
    return [name for name in names if not name.endswith(drop)]


def _training(records, results):
    names = _of(records, "training", (":corrupted",))

    def cells_of(record):
        model = model_rates(record["identity"]["device"], "training", "Training", results)
        model = {name.rsplit(":", 2)[0]: rate for name, rate in reversed(model.items())}
        cells = {}
        for name in names:
            piece = record["pieces"].get(f"training/{name}", {})
            corrupted = record["pieces"].get(f"training/{name}:corrupted", {})
            ratio = _ratio(piece.get("images_per_second"), model, name)
            share = f"{100 * piece['share_of_peak']:.0f} %" if "share_of_peak" in piece else "-"
            batch = f"{piece['batch']} {piece['dtype']}" if piece else "-"
            if "models" in piece:
                batch = f"{piece['models']} models x {batch}"
            cells[name] = [batch, *(_rate(p.get("images_per_second")) for p in (piece, corrupted)), share, *ratio]
        return ["batch", "images/s", "half corrupted", "of the peak", *["of the model"] * bool(model)], cells

    text = "Steps on random images. `half corrupted`: half of each batch goes through zoom_blur before. `several`: models at once.\n\n"
    return "## Training\n\n" + text + _table(records, "network:side", names, cells_of) if names else ""


def _evaluation(records, results):
    names = _of(records, "evaluation")

    def cells_of(record):
        model = model_rates(record["identity"]["device"], "evaluation", "Evaluation", results)
        model = {name.rsplit(":", 2)[0]: rate for name, rate in reversed(model.items())}
        rates = {name: record["pieces"].get(f"evaluation/{name}", {}).get("images_per_second") for name in names}
        cells = {name: [_rate(rate), *_ratio(rate, model, name)] for name, rate in rates.items()}
        return ["images/s", *["of the model"] * bool(model)], cells

    text = (
        "Answers of a network, with the corruption gaussian_noise (`corrupted`) or without; features of AugMix's transforms "
        "(`msd`), an image under a transform counts one; `corrupt_each` on images of as many sizes.\n\n"
    )
    return "## Evaluation\n\n" + text + _table(records, "work", names, cells_of) if names else ""


def _cifar10(records):
    rows = []
    for record in records:
        seeds = [piece for key, piece in record["pieces"].items() if key.startswith("cifar10/")]
        if seeds:
            accuracy = [100 * piece["accuracy"] for piece in seeds]
            error = f" ± {statistics.stdev(accuracy) / len(accuracy) ** 0.5:.2f}" if len(accuracy) > 1 else ""
            seconds = (
                f"{statistics.median(piece[key] for piece in seeds):.1f}" for key in ("seconds", "seconds_later")
            )
            rows.append(
                [label(record), seeds[0]["variant"], len(seeds), f"{statistics.mean(accuracy):.2f} %{error}", *seconds]
            )
    text = (
        "`configs/fast_cifar10.py` (`gpu` aims at 94 %, `cpu` is a small network of 4 epochs). Median seconds of a whole training, and "
        "without compilation: all images at the median rate of the blocks after the first.\n\n"
    )
    header = ["device", "variant", "seeds", "accuracy", "seconds", "without compilation"]
    return "## CIFAR-10\n\n" + text + markdown(header, rows) if rows else ""


def _pixels(records):
    rows = []
    for record in records:
        found = [piece for key, piece in record["pieces"].items() if key.startswith("pixels/")]
        if found:
            cases, number, one, more = (sum(p[key] for p in found) for key in ("cases", "values", "by_one", "by_more"))
            within = "yes" if pixels.within(one, more, number) else "**no**"
            worst = max(found, key=lambda piece: (piece["by_more"], piece["by_one"]))
            worst = f"{worst['name']}, by {worst['largest']}" if worst["largest"] else "-"
            rows.append([label(record), cases, f"{number:,}", one, more, worst, within])
    text = (
        "Cases (corruption, severity, size) against the pixels of a CPU. Within the tolerance: below 1 value in 10,000 differs by one "
        "level, below 1 in 1,000 by more (isolated pixels).\n\n"
    )
    header = ["device", "cases", "values", "differ by a level", "by more", "worst", "within the tolerance"]
    return "## Pixels\n\n" + text + markdown(header, rows) if rows else ""


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
