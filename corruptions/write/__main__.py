"""Writes a corrupted dataset in the form of CIFAR-10-C or ImageNet-C, as Parquet or WebDataset.

    python -m corruptions.write --source=tfds:cifar10 --out=CIFAR-10-C
    python -m corruptions.write --source=imagenet/val --preprocess=imagenet --size=224 --layout=folders --out=ImageNet-C
    python -m corruptions.write --source=images.npz --corruptions=imagenet_noc --severities=random --out=my-noc
    python -m corruptions.write --source=images.npz --layout=parquet --jpeg_quality=none --out=my-c

The same command continues after a kill, and writes again files that were damaged since.

    python -m corruptions.write --verify --out=CIFAR-10-C

compares all files with the sha256 that the dataset's manifest.json has, and changes nothing.
"""

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Sequence

from corruptions import files
from corruptions.assets import FROM_FILES
from corruptions.core import running
from corruptions.core.errors import Refused
from corruptions.core.registry import qualified_options
from corruptions.files import WriteError
from corruptions.reading import pictures
from corruptions.remote import RemoteError, staged
from corruptions.write import manifests, revisions, sources, verifying
from corruptions.write.writer import LAYOUTS, write_dataset

# Flags that are arguments of the same name.
_OF_SOURCE = ("labels", "split", "data_dir", "preprocess", "size", "limit", "turn")
_OF_DATASET = ("corruptions", "severities", "layout", "jpeg_quality", "seed", "table", "batch_size", "verify")


def main(argv: Sequence[str] | None = None) -> int:
    try:
        parser = _parser(_imported(argv))
        flags = parser.parse_args(argv)
    except ImportError as error:
        print(f"error: --imports: expected modules that Python finds and can import, found {error}", file=sys.stderr)
        return 1
    if flags.source is None and not flags.verify:
        parser.error("the following arguments are required: --source (or --verify, for an existing dataset)")
    given = [name for name, value in vars(flags).items() if value != parser.get_default(name)]
    if flags.source is None and (others := [name for name in given if name not in ("out", "verify", "progress")]):
        parser.error(f"expected --verify and --out alone without --source, found --{others[0]}")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for name in ("jax", "absl", "PIL"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        if flags.source is None:
            return _verify(flags.out)
        given = vars(flags)
        of_source = {name: given[name] for name in _OF_SOURCE}
        if flags.source.endswith((".npy", ".npz")) and (flags.frost or flags.bank):
            of_source["turn"] = False  # --turn is for those folders
        source = sources.open_source(flags.source, **of_source)
        of_dataset = {name: given[name] for name in _OF_DATASET}
        options, progress = _with_flags(flags), None if flags.progress else False
        path = write_dataset(flags.out, source, **of_dataset, options=options, progress=progress)
    except (
        WriteError,
        RemoteError,
        ValueError,
        TypeError,
        FileNotFoundError,
        ModuleNotFoundError,
        MemoryError,
    ) as error:
        flag = f"--{error.name}: " if isinstance(error, Refused) and error.name in vars(flags) else ""
        print(f"error: {flag}{error}", file=sys.stderr)
        return 1
    try:
        print(path, flush=True)
    except BrokenPipeError:  # the reader has left: `| head`
        sys.stdout = None  # Python would write once more at its end
    return 0


def _verify(out):
    """Compares a dataset with its manifest, which has all that this takes; returns the exit status."""
    folder = files.local(out)
    manifest = verifying.read_manifest(folder)
    lines, number = verifying.compared(folder, manifest, everything=True)
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    if lines:
        print(f"error: the command that wrote it repairs it: {manifests.command(manifest)}", file=sys.stderr)
    for line in revisions.several(manifest):
        print(line)
    print(f"{out}: {number} files verified, {len(lines)} problems")
    return 1 if lines else 0


def _imported(argv):
    """Imports the modules that --imports names, which may add flags for their files; returns its parser."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--imports", type=_names, default=(), help="modules that register corruptions of your own, a.b,c"
    )
    for name in parser.parse_known_args(argv)[0].imports:
        importlib.import_module(name)
    return parser


class _OneLine(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"error: {message} (--help lists the flags)\n")


def _parser(imports):
    parser = _OneLine(
        prog="python -m corruptions.write",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        parents=[imports],
    )
    add = parser.add_argument
    add("--source", help="FILE.npz (arrays images and labels), FILE.npy, a folder root/class/*, tfds:NAME")
    add("--labels", help="FILE.npy with the labels of a FILE.npy source")
    add("--out", required=True, help="folder to write")
    add("--corruptions", type=_names, default=("imagenet_c", "imagenet_c_extra"), help="names or benchmarks, a,b,c")
    add("--severities", type=_severities, help="for example 1,3,5 or 0.5,1 or random; default: all of the benchmark")
    add("--layout", choices=sorted(LAYOUTS), default="npy")
    quality = "for all layouts but npy: 1..95 (published: 85), or none"
    add("--jpeg_quality", "--jpeg-quality", type=_quality, default=85, help=quality)
    add("--seed", type=int, default=0)
    add(
        "--table",
        help="severity table of ImageNet-C (cifar, tiny, imagenet, inception) and C-bar (cifar, imagenet), or by_size: the one "
        "nearest to the shorter side; default: by_size, with --size=keep imagenet",
    )
    add("--codec", help="JPEG library whose pixels jpeg_compression has: libjpeg-turbo (default) or libjpeg9")
    add("--options", type=_options, help='JSON, for example {"noc/border": {"range": [9, 46]}}')
    for name, known in FROM_FILES.items():
        add(f"--{name}", help=known.what)
    add("--split", help="for a tfds source; default: test")
    add("--data_dir", "--data-dir", help="for a tfds source")
    add("--preprocess", choices=tuple(pictures.RECIPES), default="none", help="for a folder or tfds source")
    add("--size", type=_size, help="side of the images after --preprocess, in pixels; or keep, each at its own size")
    add("--limit", type=int, help="number of images to take, of a folder a share of each class, of others the first")
    add(
        "--turn",
        action="store_true",
        help="turn images, also of --frost and --bank, by their EXIF data; default: as stored",
    )
    add("--batch_size", "--batch-size", type=int, help="images on the device at a time")
    add(
        "--verify",
        action="store_true",
        help="compare all files with their sha256, even if size and time did not change; say how many were compared. "
        "Without --source: compare alone, by the manifest in --out",
    )
    add("--progress", action=argparse.BooleanOptionalAction, default=True)
    return parser


def _names(text):
    return tuple(name for name in text.split(",") if name)


def _severities(text):
    try:
        return [part if part == "random" else float(part) for part in text.split(",")]
    except ValueError:
        raise _wrong("random, levels such as 1,3,5, or fractions such as 0,0.5,1", text) from None


def _size(text):
    try:
        return text if text == pictures.KEEP else int(text)
    except ValueError:
        raise _wrong(f"a number of pixels, or {pictures.KEEP}", text) from None


def _quality(text):
    try:
        return None if text.lower() == "none" else int(text)
    except ValueError:
        raise _wrong("a whole number from 1 to 100, or none", text) from None


def _wrong(expected, text):
    return argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")


def _options(text):
    options = json.loads(text)
    if not isinstance(options, dict) or not all(isinstance(value, dict) for value in options.values()):
        raise argparse.ArgumentTypeError('expected {"NAME": {"OPTION": VALUE}}')
    return options


def _with_flags(flags):
    """Adds to the options the codec that a flag names, and the digests of the files that flags name."""
    options = dict(flags.options or {})
    members = manifests.members(flags.corruptions)
    asked = {corruption.qualified_name for corruption in members}
    if flags.codec:
        taking = [corruption.qualified_name for corruption in members if "codec" in corruption.options]
        if not taking:
            raise ValueError("expected --codec with imagenet_c/jpeg_compression, found --corruptions without")
        options = qualified_options(options)
        options |= {name: {"codec": flags.codec, **options.get(name, {})} for name in taking}
    for flag, known in FROM_FILES.items():
        if path := getattr(flags, flag):
            taking = asked.intersection(known.corruptions)
            if not taking:
                raise ValueError(f"expected --{flag} with {' or '.join(known.registered)}, found --corruptions without")
            digest = known.use(staged(path), flags.turn)
            options |= {name: {**options.get(name, {}), known.option: digest} for name in taking}
    return options


if __name__ == "__main__":
    running.watch()  # to the end: a killed run loses nothing that is complete, and an exception may be lost in JAX's callbacks
    sys.exit(main())
