"""Makes docs/peers.md from the heads of the scripts and from GUESSES.md.

python -m findings.page
"""

import collections
import pathlib
import re
import textwrap

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parent / "docs/peers.md"
LABELS = ("Guess", "Seen", "Hurts", "Do", "With")
INTRODUCTION = """\
# What other packages really do

Each entry was guessed first and run after, on a CPU under Linux with Python 3.11, without this project and with valid input: what one
would guess, what was seen, whom it hurts, what to do. Its script repeats it and fails when it changes. `python -m findings.page` makes
this page from the heads of the scripts in [findings](../findings/README.md). Of {run} guesses that were written down before a run and
then run, {missed} missed, wholly or in part ([all of them](../findings/GUESSES.md)).
"""


def head_of(script):
    """Returns {label: text} of the comment at the head of a script."""
    head = re.match(r"#!.*\n((?:#.*\n)+)", script.read_text())[1]
    words = re.split(rf"^({'|'.join(LABELS)}): *", re.sub("^# ?", "", head, flags=re.M), flags=re.M)
    return {label: " ".join(text.split()) for label, text in zip(words[1::2], words[2::2])}


def _escaped(text):
    """Keeps Markdown from taking names such as random_* and __key__ for emphasis, and < for a tag."""
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])|[*<]", r"\\\g<0>", text)


def outcomes(guesses):
    """Returns what each line of GUESSES.md says of its guess, in order: hit, miss or not run."""
    return [line[1] for line in re.finditer(r"^\d+\. .*? \N{RIGHTWARDS ARROW} (hit|miss|not run)", guesses, re.M)]


def page():
    """Returns the text of docs/peers.md: a section for each package, named first in the line With."""
    counts = collections.Counter(outcomes((FOLDER / "GUESSES.md").read_text()))
    lines = [INTRODUCTION.format(run=counts["hit"] + counts["miss"], missed=counts["miss"])]
    sections = collections.defaultdict(list)
    for script in sorted(FOLDER.glob("*.sh")):
        head = head_of(script)
        sections[head["With"].split()[0].rstrip(",")].append((script, head))
    for package in sorted(sections, key=str.lower):
        lines += [f"## {package}", ""]
        for script, head in sections[package]:
            link = f"[{script.stem}](../findings/{script.name})"
            lines += [f"{link}: {head['With']}", ""]
            for label in LABELS[:-1]:
                text = f"- *{label}*: {_escaped(head[label])}"
                lines += textwrap.wrap(
                    text, 128, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
                )
            lines += [""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
