"""The dataset card of a written dataset: README.md, with what Hugging Face reads of it on top.

Its last line gives the digest of the others: an edited card is told from one to be written again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from corruptions.write.layout import token

NAME = "README.md"
_SEAL = "<!-- Written by corruptions.write, and again by its next call unless edited: sha256 {} -->\n"


def text(manifest: Mapping[str, Any], suffix: str) -> str:
    """Makes the card of a manifest; nothing in it depends on time or machine.

    Args:
      manifest: of the dataset.
      suffix: of its shards.
    """
    source, (height, width, _), quality = manifest["source"], manifest["image_shape"], manifest["jpeg_quality"]
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
        f"{manifest['images']} images of {width}x{height} pixels in {len(manifest['class_names'])} classes, corrupted by "
        "`jax-corruptions`. A configuration is one corruption at one severity.",
        "",
        "| corruption | severities | levels | table | options |",
        "|---|---|---|---|---|",
        *_rows(manifest["corruptions"]),
        "",
        f"- Source: {name}, split {split}. Its licence is that of this copy.",
        f"- Draws: seed {manifest['seed']}; image i has the key `{manifest['key']}`.",
        f"- Files: {encoded}, labels beside the images. `checksums/` has the sha256 of each, for `sha256sum -c`;",
        "  `manifest.json` has all settings, versions and commands.",
        "",
    ]
    return _sealed("\n".join(lines))


def is_own(content: str) -> bool:
    """Whether a card is as `text` made it."""
    return content == _sealed(content[: content.rfind("<!--")])


def _sealed(lines):
    return lines + _SEAL.format(hashlib.sha256(lines.encode()).hexdigest())


def _configurations(entries: Mapping[str, Mapping[str, Any]], suffix: str) -> Iterator[str]:
    for _, entry in sorted(entries.items()):
        for severity in map(token, entry["written"]):
            name, path = f"{entry['path']}-{severity}", f"{entry['path']}/{severity}/*{suffix}"
            yield from (f"- config_name: {json.dumps(name)}", "  data_files:")
            yield from ("  - split: test", f"    path: {json.dumps(path)}")


def _rows(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, entry in sorted(entries.items()):
        severities = ", ".join(map(token, entry["written"]))
        levels = ", ".join(map(str, entry["levels"] or ())) or "-"
        options = f"`{json.dumps(entry['options'], sort_keys=True)}`" if entry["options"] else "-"
        yield f"| `{name}` | {severities} | {levels} | {entry['table'] or '-'} | {options} |"
