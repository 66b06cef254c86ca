"""`manifest.json`: the content of a written dataset, its settings, and its finished parts; and the card that tells readers.

The manifest is rewritten after each block (one corruption at one severity). Its field `sha256` is the digest of the other fields,
so that a changed manifest is refused. The card, README.md, is sealed in its last line, and a changed one stays.
"""

import collections
import datetime
import functools
import html
import json
import numbers
import os
import pathlib
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax

from corruptions import cbar, files
from corruptions.assets import FROM_FILES, with_files
from corruptions.core import registry
from corruptions.core.checks import folded
from corruptions.core.code import code_digest
from corruptions.core.corruption import Corruption
from corruptions.core.origin import recorded
from corruptions.core.severity_tables import BY_SIZE, OF_MANY_SIZES
from corruptions.files import WriteError
from corruptions.write.sources import safe_name

Manifest = dict[str, Any]
Entry = dict[str, Any]  # the manifest's record of one corruption
Severity = int | float | str

NAME = "manifest.json"
CARD = "README.md"
_CARD_SEAL = "<!-- Written by corruptions.write, and again by its next call unless edited: sha256 {} -->\n"
FORMAT = 2
# The settings that decide the pixels: a folder is continued only with equal ones.
_IDENTITY = ("format", "layout", "seed", "prng", "jpeg_quality", "source", "images", "image_shape", "class_names")
_SETTINGS = ("path", "severities", "levels", "table", "options", "rounding", "version")


def new(identity: Manifest, corruptions: dict[str, Entry]) -> Manifest:
    """Makes the manifest of a dataset of which nothing is written."""
    return {"format": FORMAT, **identity, "corruptions": corruptions, "files": {}, "complete": False, "runs": []}


def load(folder: str | os.PathLike) -> Manifest | None:
    """Reads the manifest of a folder; None where there is none.

    Raises WriteError for one that cannot be read, that this program did not write, or that names files outside of the
    folder.
    """
    path = pathlib.Path(folder) / NAME
    try:
        manifest = json.loads(path.read_text())
        if manifest["sha256"] != _seal(manifest):
            raise ValueError(f"expected fields of sha256 {manifest['sha256']}, found {_seal(manifest)}")
        _refuse_outside(path.parent, manifest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise WriteError(
            f"{path} is not a readable manifest ({type(error).__name__}: {error}); restore it, or write the dataset again "
            "to another folder"
        ) from error
    return manifest


def save(folder: str | os.PathLike, manifest: Manifest) -> None:
    """Seals and writes the manifest: the file holds the old one or the new one, never half of it."""
    manifest["sha256"] = _seal(manifest)
    files.replace(pathlib.Path(folder) / NAME, (json.dumps(manifest, indent=1) + "\n").encode())


def _seal(manifest):
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return files.digest_of_json(fields)


def _refuse_outside(folder, manifest):
    """Raises ValueError for names that lead out of the folder: a dataset may come from others, and its names become paths."""
    for name in manifest["class_names"]:
        if not isinstance(name, str) or name != safe_name(name):
            raise ValueError(f"expected names of classes that are safe file names, found {name!r}")
    paths = [".part", "checksums"]
    for name, entry in manifest["corruptions"].items():
        path, severities = entry["path"], [*entry["severities"], *entry["written"]]
        if not isinstance(path, str) or path != safe_name(path):
            raise ValueError(f"expected a path of {name} that is a name in its folder, found {path!r}")
        if wrong := [s for s in severities if s != "random" and not isinstance(s, int | float)]:
            raise ValueError(f"expected severities of {name} that are numbers or 'random', found {wrong[0]!r}")
        paths += [path, *(f"{path}/{token(severity)}" for severity in severities)]
    for path in paths:
        files.contained(folder, path)


def merged(stored: Manifest, requested: Manifest) -> Manifest:
    """Adds to the stored manifest the corruptions that only the requested one has; WriteError names all differences."""
    requested = json.loads(json.dumps(requested))  # tuples become lists, as in the stored one
    if stored.get("image_shape") is None:  # version 0.2.0 took the table of each image's size, and recorded none
        for name, entry in stored["corruptions"].items():
            known = registry.find(name) if entry["table"] is None else None
            if known is not None and known.for_many_sizes.fixed.get("table"):
                entry["table"], entry["options"] = BY_SIZE, {"table": BY_SIZE, **entry["options"]}
    before = {key: stored.get(key) for key in _IDENTITY}
    now = {key: requested.get(key) for key in _IDENTITY}
    source_before, source = _without_places(stored.get("source") or {}, requested["source"])
    before["source"], now["source"] = source_before, source
    for name in stored["corruptions"].keys() & requested["corruptions"].keys():
        old, new = stored["corruptions"][name], requested["corruptions"][name]
        # Version 0.2.0 recorded no version of the pixels, and wrote the first.
        old.setdefault("version", 1 if old["written"] else new["version"])
        before[name], now[name] = ({key: entry.get(key) for key in _SETTINGS} for entry in (old, new))
    differences = list(_differences(before, now))
    if differences:
        hint = ""
        if source.get("sampled") and any(line.startswith("source.listing_sha256") for line in differences):
            hint = "\nOf so many bytes only a sample is compared: a copy must have the times of its files (cp -a, rsync -a)"
        raise WriteError(
            f"{NAME} records a dataset written with other settings; use another folder or the same settings:\n  "
            + "\n  ".join(differences)
            + hint
        )
    both = requested["corruptions"] | stored["corruptions"]
    if twins := _twins(both):
        raise WriteError(f"{NAME} records another corruption called {twins[0]}; write this one to a folder of its own")
    return stored | {"corruptions": both}


def _without_places(old, new):
    """Drops from the records of two sources where their images lie and since when, if the content is the same.

    Of a large folder the content is a sample: names, sizes and times must agree, too. An older record has no digest of
    names and sizes.
    """
    same = all(old.get(name) == new.get(name) for name in ("kind", "content_sha256", "images_sha256", "labels_sha256"))
    listed = old.get("listing_sha256") == new.get("listing_sha256")
    named = old.get("names_sha256") == new.get("names_sha256") and not new.get("sampled")
    dropped = {"names_sha256", "sampled"} if "names_sha256" not in old else set()
    if same and (listed or ("names_sha256" in old and named)):
        dropped = {"path", "listing_sha256", "names_sha256", "sampled"}
    return tuple({name: value for name, value in source.items() if name not in dropped} for source in (old, new))


def _twins(planned):
    """Lists the paths that two corruptions share, also where a file system ignores capitals."""
    counts = collections.Counter(folded(entry["path"]) for entry in planned.values())
    return [entry["path"] for entry in planned.values() if counts[folded(entry["path"])] > 1]


def _differences(before, now, prefix=""):
    for key in sorted(before.keys() | now.keys()):
        old, new_value = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new_value, dict):
            yield from _differences(old, new_value, f"{prefix}{key}.")
        elif old != new_value:
            yield f"{prefix}{key}: stored {_short(old)}, asked {_short(new_value)}"


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def run_record() -> dict[str, Any]:
    """Describes this run: command, time, code, versions and device."""
    return {
        "command": shlex.join(sys.argv),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "code": code_digest(corruption="clean"),  # of the library
        **recorded(),
    }


def command(manifest: Manifest, *more: str) -> str:
    """Returns the commands that wrote the dataset, each once, with flags added; repeated, they continue and repair it."""
    found = dict.fromkeys(_as_typed(run["command"]) for run in manifest["runs"] or [{"command": ""}])
    return " && ".join(shlex.join([*words, *more]) for words in found)


def _as_typed(command: str) -> tuple[str, ...]:
    program, *flags = shlex.split(command) or [""]
    if not program or program.endswith(os.path.join("corruptions", "write", "__main__.py")):
        return "python", "-m", "corruptions.write", *flags
    return program, *flags


def token(severity: Severity) -> str:
    """Formats a severity for paths: `3`, `0.25` or `random`."""
    return f"{severity:g}" if isinstance(severity, float) else str(severity)


def level(entry: Mapping[str, Any], severity: Severity) -> Severity | None:
    """Returns the severity that `corruptions.corrupt` takes for a severity of an entry; None draws it."""
    if severity == "random" or entry["levels"] is None:
        return None if severity == "random" else severity
    return entry["levels"][entry["severities"].index(severity)]


def entries(
    names: str | Corruption | Iterable[str | Corruption],
    severities: Any,
    options: Mapping[str, Mapping[str, Any]],
    table: str | None,
    shape: tuple[int, ...] | None,
    suffix: str,
) -> dict[str, Entry]:
    """Plans the entry of each corruption; `shape` is None for images of many sizes, which have one table whatever their
    sizes; `suffix` ends the path; other arguments as in `write_dataset`.

    Raises ValueError for an unknown name, severity, option or table, severities of other corruptions, or two corruptions
    with one path.
    """
    found = members(names)
    options = registry.qualified_options(options)
    if isinstance(severities, Mapping):
        severities = {registry.get(name).qualified_name: own for name, own in severities.items()}
        asked = {corruption.qualified_name for corruption in found}
        if others := sorted(severities.keys() - asked):
            raise ValueError(
                f"expected severities of corruptions that are asked for, found those of {', '.join(others)}"
            )
    if table is not None and not any("table" in corruption.options for corruption in found):
        raise ValueError(f"expected no table for corruptions without one, found {table!r}")
    planned = {}
    for corruption, (selected, benchmark) in found.items():
        name = corruption.qualified_name
        own = with_files(corruption, options.get(name, {}))
        ranges = table or cbar.BENCHMARK_TABLE.get(benchmark or "")  # a benchmark selects levels of its own table
        if shape is None and corruption.for_many_sizes is not corruption:
            ranges = ranges or OF_MANY_SIZES
        if ranges is not None and "table" in corruption.options:
            own = {"table": ranges, **own}
        listed = severities.get(name) if isinstance(severities, Mapping) else severities
        listed = _severities(corruption, listed, own, selected)
        if "random" in listed:
            own = dict(registry.with_levels(own, selected))
        planned[name] = {
            "path": corruption.name + suffix,
            "severities": listed,
            "levels": selected and [s if s == "random" else selected[s - 1] for s in listed],
            "table": corruption.describe(shape, own).get("table") if shape else own.get("table", ranges),
            "options": own,
            "rounding": corruption.rounding,
            "version": corruption.version,
            "written": [],
        }
    if twins := _twins(planned):
        raise ValueError(f"several benchmarks have a corruption called {twins[0]}; write them to folders of their own")
    return planned


def draw_once(planned: Mapping[str, Entry], shape: tuple[int, ...]) -> None:
    """Traces the draws of the corruptions that have options or need files, for images of a shape.

    Raises the ValueError of an option's value that a corruption does not take, or of files that are missing.
    """
    from_files = {name for known in FROM_FILES.values() for name in known.corruptions}
    for name, entry in planned.items():
        if entry["options"] or name in from_files:
            severity: Any = level(entry, entry["severities"][0])
            draw = functools.partial(registry.get(name).sample, shape=shape, severity=severity, **entry["options"])
            jax.eval_shape(draw, jax.random.key(0))


Members = dict[Corruption, tuple[Sequence[int] | None, str | None]]


def members(names: str | Corruption | Iterable[str | Corruption]) -> Members:
    """Returns {corruption: (the levels that its benchmark numbers 1, 2, ..., or None; that benchmark or None)}."""
    found: Members = {}
    for name in [names] if isinstance(names, str | Corruption) else names:
        benchmark = name if name in registry.benchmarks() else None
        for member in registry.names(benchmark) if benchmark else (name,):
            selected = registry.selected_levels(member, benchmark) if benchmark else None
            corruption = registry.registered(member)
            if found.setdefault(corruption, (selected, benchmark))[0] != selected:
                raise ValueError(
                    f"{corruption.qualified_name} is asked for with two selections of its levels; write them to folders "
                    "of their own"
                )
    if not found:
        raise ValueError("expected at least one corruption, found none")
    return found


def _severities(corruption, requested, options, selected):
    if requested is None:
        requested = registry.severities(corruption) if selected is None else range(1, len(selected) + 1)
    if isinstance(requested, str | numbers.Real):
        requested = [requested]
    if wrong := [s for s in requested if s != "random" and (isinstance(s, bool) or not isinstance(s, numbers.Real))]:
        raise ValueError(
            f'expected severities "random", 3 or (1, 3, 5) of {corruption.qualified_name}, found {wrong[0]!r}'
        )
    severities = [s if s == "random" else int(s) if float(s).is_integer() else float(s) for s in requested]
    for severity in severities:
        if selected is not None and severity not in ("random", *range(1, len(selected) + 1)):
            raise ValueError(
                f"expected severities 1..{len(selected)} of {corruption.qualified_name}, as its benchmark has them, found "
                f"{severity}"
            )
        if severity != "random":
            corruption.check_severity(severity, options)
    if not severities or len(set(severities)) < len(severities):
        raise ValueError(f"expected severities of {corruption.qualified_name} without repetition, found {requested}")
    return severities


def save_card(folder: pathlib.Path, manifest: Manifest, suffix: str) -> bool:
    """Writes the card, README.md; False where it was edited, and stays."""
    path = folder / CARD
    if path.exists() and (before := path.read_text("utf-8")) != _sealed(before[: before.rfind("<!--")]):
        return False
    files.replace(path, card(manifest, suffix).encode())
    return True


def card(manifest: Manifest, suffix: str) -> str:
    """Makes the dataset card, README.md, with the metadata that Hugging Face reads on top; `suffix` ends its shards.

    Nothing in it depends on time or machine. Its last line holds the digest of the others, which tells an edited
    card from one to be written again.
    """
    source, shape, quality = manifest["source"], manifest["image_shape"], manifest["jpeg_quality"]
    sizes = f"{shape[1]}x{shape[0]} pixels" if shape else "their own sizes"
    name, split = source.get("name", source["kind"]), source.get("split", "all")
    encoded = "PNG, without loss" if quality is None else f"JPEG of quality {quality}, 4:2:0"
    lines = [
        "---",
        "task_categories:",
        "- image-classification",
        "configs:",
        *_configurations(manifest["corruptions"], suffix),
        "---",
        "",
        "# Images under corruptions",
        "",
        f"{manifest['images']} images of {sizes} in {len(manifest['class_names'])} classes, corrupted by "
        "`jax-corruptions`. A configuration is one corruption at one severity.",
        "",
        "| corruption | severities | levels | table | options |",
        "|---|---|---|---|---|",
        *_rows(manifest["corruptions"]),
        "",
        f"- Source: {_code(name)}, split {_code(split)}. This copy has the same licence.",
        f"- Draws: seed {manifest['seed']}; image i has the key `{manifest['key']}`.",
        f"- Files: {encoded}, labels beside the images. `checksums/` has the sha256 of each, for `sha256sum -c`;",
        "  `manifest.json` has all settings, versions and commands.",
        "",
    ]
    return _sealed("\n".join(lines))


def _sealed(lines):
    return lines + _CARD_SEAL.format(files.digest_of(lines))


def _configurations(entries: Mapping[str, Entry], suffix: str) -> Iterator[str]:
    for _, entry in sorted(entries.items()):
        for severity in map(token, entry["written"]):
            name, path = f"{entry['path']}-{severity}", f"{entry['path']}/{severity}/*{suffix}"
            yield from (f"- config_name: {json.dumps(name)}", "  data_files:")
            yield from ("  - split: test", f"    path: {json.dumps(path)}")


def _rows(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, entry in sorted(entries.items()):
        severities = ", ".join(map(token, entry["written"]))
        levels = ", ".join(map(str, entry["levels"] or ())) or "-"
        options = _code(json.dumps(entry["options"], sort_keys=True)) if entry["options"] else "-"
        version = entry.get("version") or 1
        named = f"{_code(name)}{f', version {version} of its pixels' * (version > 1)}"
        yield f"| {named} | {severities} | {levels} | {entry['table'] or '-'} | {options} |"


def _code(text):
    """Formats text so that Markdown shows it unchanged, in a table too: names come from foreign datasets and corruptions."""
    return f"<code>{html.escape(' '.join(str(text).split())).replace('|', '&#124;')}</code>"
