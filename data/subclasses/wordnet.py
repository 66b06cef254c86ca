"""Which synsets lie below which, from WordNet's file of nouns, `data.noun`.

A line of it is `OFFSET FILE n COUNT WORD ID ... COUNT SYMBOL OFFSET POS WHERE ... | GLOSS`, the first
count hexadecimal; the pointers with the symbol `~` lead to hyponyms. ImageNet's classes are called
by these offsets in WordNet 3.0: n02084071 is 02084071.
"""

import os
from collections.abc import Mapping
from pathlib import Path


def hyponyms(path: str | os.PathLike) -> dict[str, tuple[str, ...]]:
    """Reads {synset: its direct hyponyms} of every noun, as n02084071.

    Args:
      path: of `data.noun`, or of the folder it lies in.

    Raises:
      FileNotFoundError: it is not there.
      ValueError: a line is none of WordNet's.
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
    """Collects a synset and all below it.

    Args:
      head: such as n02084071.
      direct: of `hyponyms`.

    Raises:
      ValueError: the head, or one it leads to, is no synset.
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
