"""Some of a dataset's test images, by a list of their places: `--config.eval.images=FILE`.

A line of the file is the place of an image in the whole test split and the name of its class. This makes the list of
RobustBench's 5,000 images of ImageNet, which many papers on adaptation use, from the names that it publishes
(robustbench/helper_files/imagenet_test_image_ids.txt, MIT) and the tree of your own copy:

    python -m data.listed --names=imagenet_test_image_ids.txt --source=ROOT --out=imagenet_5000.txt --check=robustbench

ROOT holds val/WORDNET_ID/*.JPEG; the dataset may be this tree, or a store that `data.prepare` made of it.
"""

import dataclasses
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corruptions.files import digest_of
from data import tree
from data.dataset import Dataset, Split
from runtime import files


class Known(NamedTuple):
    """A published list: how many images, sum of their numbers, sha256 of the numbers as little-endian uint16."""

    number: int
    sum: int
    sha256: str


KNOWN = {
    "robustbench": Known(5000, 123_943_129, "6b74a79879be21a0af7be4fec53582de02eeb5d6a2805469dbc21205ff36da44"),
}
_NUMBER = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def choose(dataset: Dataset, path: str | os.PathLike) -> Dataset:
    """Keeps the test images of a list, in its order.

    Provenance says how many, with the digest of their places: their answers are not those to all images. Raises
    FileNotFoundError without the file; ValueError, which names the first such line, where a line is no place with a
    class, or names an image twice, one that is not in the test split, or one of another class.
    """
    path = Path(files.local(path, "config.eval.images")).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"expected a list of test images as config.eval.images, found no file {path}")
    places, of_place = [], {int(place): row for row, place in enumerate(np.asarray(dataset.test.index))}
    seen = set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        place, _, name = line.strip().partition(" ")
        if not place.isdecimal() or not name:
            raise ValueError(f"{path}, line {number}: expected the place of a test image and its class, found {line!r}")
        if int(place) in seen:
            raise ValueError(f"{path}, line {number}: expected each image once, found {place} again")
        if int(place) not in of_place:
            raise ValueError(
                f"{path}, line {number}: expected a place in the {len(dataset.test)} test images of {dataset.name}, found "
                f"{place}; a limit of test images, or a damaged file, leaves places out"
            )
        found = dataset.class_names[int(dataset.test.labels[of_place[int(place)]])]
        if found != name:
            raise ValueError(
                f"{path}, line {number}: expected an image of {name} at {place}, found one of {found}: the list was made "
                "from another copy of the dataset; make it again with python -m data.listed"
            )
        seen.add(int(place))
        places.append(int(place))
    if not places:
        raise ValueError(f"expected places of test images in {path}, found none")
    rows = np.array([of_place[place] for place in places])
    test = Split(*(np.asarray(part[rows]) for part in (dataset.test.images, dataset.test.labels, dataset.test.index)))
    listed = {"number": len(places), "sha256": digest_of(np.array(places, np.int32))}
    facts = dict(dataset.provenance.get("test", {}))
    facts |= {"size": len(places), "sha256": {**facts.get("sha256", {}), "listed": listed["sha256"]}}
    return dataclasses.replace(
        dataset, test=test, provenance={**dataset.provenance, "test": facts, "listed": listed}, parts=None
    )


def places_of(names: list[str], source: str | os.PathLike) -> list[tuple[int, str]]:
    """Finds (place in the test split, class) of each `CLASS/FILE` in a tree.

    Raises FileNotFoundError, which names the first, for files that the tree lacks; ValueError for a name that appears
    twice.
    """
    root = tree.find_root(source)
    folder = next((root / name for name in tree.TEST_FOLDERS if (root / name).is_dir()), root)
    classes = tree.class_folders(folder)
    of_name = {
        path.relative_to(folder).as_posix(): (place, classes[label])
        for path, label, place in tree.list_images(folder, classes)
    }
    if missing := [name for name in names if name not in of_name]:
        raise FileNotFoundError(
            f"expected {missing[0]} in {folder}, found {len(missing)} of {len(names)} names missing"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"expected each image once, found {len(set(names))} images in {len(names)} lines")
    return [of_name[name] for name in names]


def check(names: list[str], known: Known) -> None:
    """Refuses (ValueError) names that differ from a published list, or have another order."""
    numbers = [int(match[1]) for name in names if (match := _NUMBER.search(name))]
    if any(number >= 2**16 for number in numbers):
        raise ValueError(f"expected numbers of validation images below 65536, found {max(numbers)}")
    found = Known(len(numbers), sum(numbers), digest_of(np.array(numbers, "<u2")))
    if found != known:
        raise ValueError(
            f"expected {known.number} names with sum {known.sum} and sha256 {known.sha256[:12]}, found {found.number} with "
            f"{found.sum} and {found.sha256[:12]}; take the file as it was published"
        )


def main(argv: list[str] | None = None) -> int:
    from runtime import command

    parser = command.Arguments(prog="python -m data.listed", description=__doc__.splitlines()[0])
    parser.add_argument("--names", required=True, help="file of lines CLASS/FILE")
    parser.add_argument("--source", required=True, help="root of the tree with val/CLASS/FILE")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--check", choices=KNOWN, help="refuse another list than this published one")
    flags = parser.parse_args(argv)
    try:
        names = Path(flags.names).expanduser().read_text().split()
        if flags.check:
            check(names, KNOWN[flags.check])
        lines = [f"{place} {name}\n" for place, name in places_of(names, flags.source)]
        files.write_atomically(Path(flags.out), "".join(lines))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"written to {flags.out}: {len(lines)} images; evaluate them with --config.eval.images={flags.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
