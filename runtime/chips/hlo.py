"""The text of a compiled program (HLO) as operations, each with the number of times it is carried out."""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_ARRAY = re.compile(r"\b(pred|bf16|[a-z]\d+\w*)\[([\d,]*)\](\{[^}]*\})?")
_ON_CHIP = re.compile(r"S\([1-9]")  # memory spaces of a layout; the one unnamed is the large memory
_WRAPPERS = (
    "vmap()",
    "closed_call",
    "while",
    "body",
    "jit(_corrupt)",
    "jit(_augment)",
)  # say nothing of what is computed


@dataclasses.dataclass(frozen=True)
class Operation:
    """One line: `%name = type code(argument), attributes`."""

    name: str
    type: str
    code: str
    argument: str
    attributes: str
    root: bool

    @property
    def operands(self) -> list[str]:
        """The names of the operations it takes."""
        return re.findall(r"%([\w.\-]+)", self.argument)

    @property
    def source(self) -> str:
        """The last names of what in the source it comes from, `vmap(fft)/mul`; "" if not said."""
        found = re.search(r'op_name="([^"]*)"', self.attributes)
        parts = [part for part in (found[1] if found else "").split("/")[1:] if part not in _WRAPPERS]
        return "/".join(parts[-2:])

    @property
    def cycles(self) -> int:
        """The compiler's estimate; 0 where it gives none."""
        found = re.search(r'"estimated_cycles":"(\d+)"', self.attributes)
        return int(found[1]) if found else 0

    def called(self, attribute: str) -> str | None:
        """The name of the computation in an attribute: `calls`, `body`, `condition`, `to_apply`."""
        found = re.search(rf"\b{attribute}=%?([\w.\-]+)", self.attributes)
        return found[1] if found else None


class Executed(NamedTuple):
    """An operation, the times it is carried out, whether that is known (a loop until a condition
    holds counts the most trips that its condition names, or one), and its source or its loop's.
    """

    operation: Operation
    times: int
    exact: bool
    source: str


@dataclasses.dataclass(frozen=True)
class Program:
    """Computations by name, each a list of operations, and the name of the first one to run."""

    computations: dict[str, list[Operation]]
    entry: str

    @functools.cached_property
    def types(self) -> dict[str, str]:
        """{name: type} of all operations."""
        return {o.name: o.type for operations in self.computations.values() for o in operations}

    def executed(self) -> Iterator["Executed"]:
        """Yields the operations of the entry computation, and of loops, branches and calls in it.

        Operations inside a fusion are not among them: they are one kernel. Of a conditional the
        branch with most cycles counts.
        """
        yield from self._executed(self.entry, 1, True, "")

    def _executed(self, name, times, exact, source):
        for operation in self.computations[name]:
            own = operation.source or source
            yield Executed(operation, times, exact, own)
            if operation.code == "while":
                trips, known = self.trips(operation)
                yield from self._executed(operation.called("body"), times * trips, exact and known, own)
            elif operation.code in ("call", "async-start") and (body := _body(operation)) in self.computations:
                yield from self._executed(body, times, exact, own)
            elif operation.code == "conditional":
                branches = [list(self._executed(name, times, exact, own)) for name in _branches(operation)]
                yield from max(branches, key=lambda found: sum(one.times * one.operation.cycles for one in found))

    def trips(self, loop: Operation) -> tuple[int, bool]:
        """Counts the trips of a `while`, and says whether the number is exact.

        From `known_trip_count`, else the constant with which the condition compares its counter.
        """
        if known := re.search(r'"known_trip_count":\{"n":"(\d+)"', loop.attributes):
            return int(known[1]), True
        condition = self.inside(loop.called("condition"))
        bounds = [int(b) for o in condition if (b := _integer(o)) is not None]
        compares = [o for o in condition if o.code == "compare"]
        if not bounds or not compares:
            return 1, False
        return max(bounds), len(compares) == 1

    def inside(self, name: str) -> list[Operation]:
        """Lists the operations of a computation and of all that it calls."""
        found = []
        for operation in self.computations[name]:
            found.append(operation)
            if (inner := _body(operation)) in self.computations:
                found += self.inside(inner)
        return found

    def kernel(self, operation: Operation) -> list[Operation]:
        """Lists what one that is executed works out: what is inside of a fusion, or itself; others that
        call are executed one by one.
        """
        inner = operation.called("calls") if operation.code == "fusion" else None
        return self.inside(inner) if inner in self.computations else [operation]


def parse(text: str) -> Program:
    """Reads the text of a compiled program, `jax.stages.Compiled.as_text()`.

    Raises:
      ValueError: no entry computation in it.
    """
    computations, current, entry = {}, None, None
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        if header := _HEADER.match(line):
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif (found := _OPERATION.match(line)) and current is not None:
            current.append(_operation(found[2], found[3], found[1] is not None))
    if entry is None:
        raise ValueError("expected the text of a compiled program with an ENTRY computation, found none")
    return Program(computations, entry)


def array_bytes(type_text: str, on_chip: bool = False) -> int:
    """Counts the bytes of all arrays of a type, those in on-chip memory only if asked for."""
    return sum(
        _item_bytes(kind) * math.prod(map(int, filter(None, shape.split(","))))
        for kind, shape, layout in _ARRAY.findall(type_text)
        if on_chip or not _ON_CHIP.search(layout)
    )


def _operation(name, text, root):
    end = _closing(text) if text.startswith("(") else text.index(" ")
    type_text, (code, _, text) = text[:end], text[end:].lstrip().partition("(")
    end = _closing("(" + text) - 1
    return Operation(name, type_text, code, text[: end - 1], text[end:], root)


def _closing(text):
    """The place after the parenthesis that closes the first one."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1
    raise ValueError(f"expected as many closing parentheses as opening ones, found {text[:80]!r}")


def _body(operation):
    return operation.called("calls") or operation.called("to_apply")


def _branches(operation):
    listed = re.search(r"branch_computations=\{([^}]*)\}", operation.attributes)
    if listed:
        return re.findall(r"[\w.\-]+", listed[1])
    return [operation.called("true_computation"), operation.called("false_computation")]


def _integer(operation):
    whole = operation.code == "constant" and re.match(r"[su]\d", operation.type) and operation.argument.isdecimal()
    return int(operation.argument) if whole else None


def _item_bytes(kind):
    bits = re.search(r"\d+", kind)
    return max(1, int(bits[0]) // 8) if bits else 1
