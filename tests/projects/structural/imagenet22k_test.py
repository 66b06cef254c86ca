"""Lists of synsets: the published counts, and closures of a generated WordNet."""

import json

import pytest

from data.natural import sets
from projects.structural import imagenet22k


def line(offset, *below, instances=()):
    pointers = [f"~ {other} n 0000" for other in below] + [f"~i {other} n 0000" for other in instances]
    pointers.append("@ 00001740 n 0000")
    return f"{offset} 03 n 02 a_word 0 other 1 {len(pointers):03} {' '.join(pointers)} | a gloss | ~ 99999999 n 0000"


def write(path, lines):
    path.write_text("\n".join(["  1 This is the licence.", *lines]) + "\n")


def test_the_seen_lists_are_of_the_published_lengths():
    numbers = [len(one.seen) for one in imagenet22k.SUPERCLASSES]
    assert numbers == [8, 13, 4, 58, 4, 4, 6, 14, 7, 49, 118, 13, 16, 5, 16, 7, 10, 17, 27, 26, 20, 36, 7, 13, 44]
    places = [place for one in imagenet22k.SUPERCLASSES for place in one.seen]
    assert len(set(places)) == len(places) == 542 and sum(one.unseen for one in imagenet22k.SUPERCLASSES) == 5017
    assert 98 not in places and min(places) == 0 and max(places) == 998


def test_synsets_below_are_collected_once_and_without_instances(tmp_path):
    write(
        tmp_path / "data.noun",
        [line("00000001", "00000002", "00000003", instances=["00000009"]), line("00000002", "00000004")]
        + [line("00000003", "00000004"), line("00000004"), line("00000009")],
    )
    direct = imagenet22k.hyponyms(tmp_path)
    assert direct["n00000001"] == ("n00000002", "n00000003")
    assert imagenet22k.below("n00000001", direct) == {f"n0000000{i}" for i in (1, 2, 3, 4)}
    with pytest.raises(ValueError, match=r"expected the synset n00000007 .* found none; is it version 3\.0\?"):
        imagenet22k.below("n00000007", direct)


def test_lists_of_a_generated_wordnet(tmp_path, capsys):
    """Heads with their published numbers of unseen synsets below them, and some of ImageNet-1K."""
    names, lines, number = list(sets.imagenet().groups), [], 90_000_000
    for one in imagenet22k.SUPERCLASSES:
        unseen = [str(number + i) for i in range(one.unseen - 1)]  # the head is unseen itself
        number += len(unseen)
        seen = [names[place][1:] for place in one.seen]
        lines += [line(one.head[1:], *unseen, *seen), *map(line, (*unseen, *seen))]
    shared = "90000000"  # amphibian's, and now below bear too, which has fewer
    lines = [
        line("02131653", *(f"{i:08}" for i in range(7)), shared) if row.startswith("02131653") else row for row in lines
    ]
    lines += [line(f"{i:08}") for i in range(7)]
    write(tmp_path / "data.noun", lines)
    imagenet22k.write(tmp_path / "lists.json", tmp_path)
    found = json.loads((tmp_path / "lists.json").read_text())
    assert sum(len(parts["seen"]) for parts in found.values()) == 542
    expected = {one.name: one.unseen for one in imagenet22k.SUPERCLASSES} | {"amphibian": 85, "bear": 9}
    assert {name: len(parts["unseen"]) for name, parts in found.items()} == expected
    assert "n90000000" in found["bear"]["unseen"] and "n02131653" in found["bear"]["unseen"]
    order = [one.name for one in imagenet22k.SUPERCLASSES]
    assert list(found) == order and all(parts["unseen"] == sorted(parts["unseen"]) for parts in found.values())
    every = [name for parts in found.values() for part in parts.values() for name in part]
    assert len(set(every)) == len(every) and found["dog"]["seen"][0] == "n02085620"
    assert "85 unseen, published 86" in capsys.readouterr().out
    few = imagenet22k.lists(imagenet22k.hyponyms(tmp_path), {"n90000000", "n90000001"})
    assert {name: parts["unseen"] for name, parts in few.items() if parts["unseen"]} == {
        "amphibian": ["n90000001"],
        "bear": ["n90000000"],
    }


def test_files_that_are_not_wordnets_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected WordNet's file data\.noun"):
        imagenet22k.hyponyms(tmp_path)
    cut = "00000001 03 n 01 a 0 002 ~ 00000002 n 0000 | cut"
    for wrong in ("plain text", "00000001 03 v 01 a 0 000 | a verb", cut):
        write(tmp_path / "data.noun", [line("00000005"), wrong])
        with pytest.raises(ValueError, match=r"data\.noun, line 3: expected a synset of nouns, found '"):
            imagenet22k.hyponyms(tmp_path)
