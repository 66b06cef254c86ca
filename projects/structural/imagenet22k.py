"""ImageNet-22K's subclasses of 25 superclasses: those in ImageNet-1K are seen, the others unseen.

    python -m projects.structural.imagenet22k --wordnet=DICT --out=FILE.json [--tree=DIR or FILE]

The released lists were edited by hand: 542 synsets seen and 5,017 unseen, none in two superclasses. The seen lists here
are the released ones. The unseen lists are computed: all synsets below the head of a superclass that are not in
ImageNet-1K; a synset below two heads goes to the head with fewer synsets. DICT holds WordNet 3.0's `data.noun`. DIR
has a folder for each synset of ImageNet-22K, or FILE a line for each (the package timm has one, `imagenet22k_synsets.txt`);
with it, other synsets are left out. The command prints the counts beside the published ones.

All of WordNet 3.0 has 5,352 unseen synsets. 282 of them are not among the 21,841 of ImageNet-22K, so that 5,070 are left: as
many as in the released lists for 20 of the 25 superclasses. The other five were edited by hand: the released lists lack 5
birds, 7 cats (gib, blue point Siamese and the five kinds of lynx), 12 fish, 19 hoofed animals and 10 primates.

A line of `data.noun` is `OFFSET FILE n COUNT WORD ID ... COUNT SYMBOL OFFSET POS WHERE ... | GLOSS`, the first count
hexadecimal; pointers with the symbol `~` lead to hyponyms. ImageNet names its classes by these offsets in WordNet 3.0:
n02084071 is 02084071.
"""

from runtime import command  # isort: skip

import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import NamedTuple

from data import tree
from data.natural import sets
from runtime import files


class Superclass(NamedTuple):
    """A superclass, and the numbers of its subclasses."""

    name: str  # in words
    head: str  # the synset above its subclasses
    unseen: int  # number of unseen subclasses in the released list
    places: str  # places of the seen subclasses among ImageNet's 1,000 classes, such as "25-32 40"

    @property
    def seen(self) -> tuple[int, ...]:
        """The places as numbers."""
        ends = [tuple(map(int, part.split("-"))) for part in self.places.split()]
        return tuple(place for pair in ends for place in range(pair[0], pair[-1] + 1))


# fmt: off
SUPERCLASSES = (
    Superclass("amphibian", "n01627424", 86, "25-32"),
    Superclass("appliance", "n02729837", 38, "534 544 550 589 606 651 760 766 786 859 882 891 897"),
    Superclass("aquatic mammal", "n02062017", 55, "147-150"),
    Superclass("bird", "n01503061", 792, "7-24 80-97 99-100 127-146"),
    Superclass("bear", "n02131653", 8, "294-297"),
    Superclass("beverage", "n07881800", 327, "966-969"),
    Superclass("big cat", "n02127808", 13, "288-293"),
    Superclass("building", "n02913152", 229, "410 425 449 497-498 580 598 624 663 668 698 727 762 832"),
    Superclass("cat", "n02121620", 24, "281-287"),
    Superclass("clothing", "n03051540", 484,
        "399-400 411 433 439 445 451-452 457 459 465 474 496 515 518 529 552 560 568 578 601 608 610 614-615 617 "
        "638-639 643 652 655 658 667 689 697 735 775 785 793 806 808 824 834 841-842 869 887 903 906"),
    Superclass("dog", "n02084071", 72, "151-268"),
    Superclass("electronic equipment", "n03278248", 70, "482 485 487 508 528 605 613 662 664 688 707 742 848"),
    Superclass("fish", "n02512053", 538, "0-6 389-397"),
    Superclass("footwear", "n03380867", 48, "502 514 630 770 774"),
    Superclass("fruit", "n13134947", 293, "948-957 984 987-990 998"),
    Superclass("fungus", "n12992868", 292, "991-997"),
    Superclass("geological formation", "n09287968", 141, "970 972-980"),
    Superclass("hoofed animal", "n02370806", 257, "339-355"),
    Superclass("insect", "n02159955", 408, "300-326"),
    Superclass("musical instrument", "n03800933", 131,
        "401-402 420 432 486 494 513 541 546 558 566 577 579 593-594 641-642 683-684 687 699 776 822 875 881 889"),
    Superclass("primate", "n02469914", 71, "365-384"),
    Superclass("reptile", "n01661091", 232, "33-68"),
    Superclass("utensil", "n04516672", 79, "469 505 521 567 813 849 909"),
    Superclass("vegetable", "n07707451", 163, "935-947"),
    Superclass("vehicle", "n04576211", 166,
        "407-408 428 436 444 468 511 547 555 561 565 569 573 575 586 603 609 612 627 656 660-661 665 670-671 675 690 "
        "705 717 734 751 757 791 802-803 817 820 829 847 864 866-867 870 880"),
)
# fmt: on


def hyponyms(path: str | os.PathLike) -> dict[str, tuple[str, ...]]:
    """Reads {synset: its direct hyponyms} of every noun, as n02084071, from the file `data.noun` or its folder.

    Raises FileNotFoundError where it is not there; ValueError for a line that is not one of WordNet's.
    """
    file = Path(path).expanduser()
    file = file / "data.noun" if file.is_dir() else file
    if not file.is_file():
        raise FileNotFoundError(f"expected WordNet's file data.noun, found no file {file}; WordNet 3.0 has it in dict/")
    found = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.startswith("  "):  # the licence
            continue
        try:
            fields = line.partition("|")[0].split()
            offset, first = fields[0], 4 + 2 * int(fields[3], 16)
            pointers = fields[first + 1 :]
            if not (offset.isdigit() and fields[2] == "n" and len(pointers) == 4 * int(fields[first])):
                raise ValueError
        except (ValueError, IndexError):
            raise ValueError(f"{file}, line {number}: expected a synset of nouns, found {line[:60]!r}") from None
        found[f"n{offset}"] = tuple(f"n{to}" for symbol, to in zip(pointers[::4], pointers[1::4]) if symbol == "~")
    return found


def below(head: str, direct: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Collects a synset, such as n02084071, and all below it by the result of `hyponyms`.

    Raises ValueError where the head, or a hyponym, is no synset.
    """
    found, waiting = set(), [head]
    while waiting:
        name = waiting.pop()
        if name not in direct:
            raise ValueError(f"expected the synset {name} below {head} in WordNet, found none; is it version 3.0?")
        if name not in found:
            found.add(name)
            waiting += direct[name]
    return found


def lists(
    direct: Mapping[str, tuple[str, ...]], present: Container[str] | None = None
) -> dict[str, dict[str, list[str]]]:
    """Lists {superclass: {"seen": synsets, "unseen": synsets}} by the result of `hyponyms`.

    `present` are the synsets of ImageNet-22K; None takes all of WordNet's. Raises ValueError where a head is no synset.
    """
    names = list(sets.imagenet().groups)
    trees = {one.name: below(one.head, direct) for one in SUPERCLASSES}
    taken, unseen = set(names), {}
    for name in sorted(trees, key=lambda name: len(trees[name])):
        unseen[name] = sorted(s for s in trees[name] - taken if present is None or s in present)
        taken |= trees[name]
    return {one.name: {"seen": [names[i] for i in one.seen], "unseen": unseen[one.name]} for one in SUPERCLASSES}


def write(path: Path, source: str | os.PathLike, folder: Path | None = None) -> None:
    """Writes the lists as JSON and prints their lengths. `folder` may be a text file of synsets, one on each line."""
    found = lists(hyponyms(source), None if folder is None else _present(folder))
    files.write_json(path, found)
    total = [0, 0, 0]
    for one in SUPERCLASSES:
        numbers = len(one.seen), len(found[one.name]["unseen"]), one.unseen
        total = [so_far + number for so_far, number in zip(total, numbers, strict=True)]
        print("{:22} {:4} seen {:6} unseen, published {}".format(one.name, *numbers))
    print("{:22} {:4} seen {:6} unseen, published {}".format("all", *total))


def _present(source):
    """The synsets of ImageNet-22K: names of folders, or the lines of a file."""
    if not source.is_file():
        return set(tree.class_folders(source))
    names = set(source.read_text("utf-8").split())
    if wrong := sorted(name for name in names if not (name[0] == "n" and name[1:].isdigit())):
        raise ValueError(f"{source}: expected a synset such as n02084071 on each line, found {wrong[0]!r}")
    if not names:
        raise ValueError(f"{source}: expected a synset such as n02084071 on each line, found an empty file")
    return names


def main():
    parser = command.Arguments(description=__doc__.partition("\n")[0])
    parser.add_argument("--wordnet", required=True, help="folder of WordNet 3.0's data.noun")
    parser.add_argument("--out", type=Path, required=True, help="JSON file")
    parser.add_argument("--tree", type=Path, help="folder of ImageNet-22K's folders, or a file of its synsets")
    given = parser.parse_args()
    write(given.out, given.wordnet, given.tree)


if __name__ == "__main__":
    with command.errors():
        main()
