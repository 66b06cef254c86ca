"""Reads the text of a compiled program (HLO): its operations, how often each one runs, and its costs."""

import math
import re
from typing import NamedTuple

import pandas as pd

COSTS = ("cycles", "traffic", "kernels", "trips", "gathers", "collectives")
# Names, constants, and operations that only call others.
_IDLE = r"parameter|constant|(get-)?tuple(-element)?|bitcast|after-all|(partition|replica)-id|while|conditional|call|"
_IDLE = re.compile(_IDLE + r"opt(imization)?-barrier|add-dependency|.*-done")
_IDLE_CALL = re.compile('"(ConcatBitcast|GatherScatterIndicesBitpacked|AllocateBuffer|AssumeGatherIndicesInBound)"')
_COLLECTIVE = re.compile(r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-(permute|broadcast))(-start)?")
_SLICES = ("slice", "dynamic-slice", "gather")
_PARTIAL = (*_SLICES, "dynamic-update-slice")  # these read a part of their first operand, or nothing
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_ARRAY = re.compile(r"\b(pred|bf16|[a-z]\d+\w*)\[([\d,]*)\](\{[^}]*\})?")
_ON_CHIP = re.compile(r"S\([1-9]")  # a memory space in a layout; the large memory has no name
_WRAPPERS = {"vmap()", "closed_call", "while", "body", "jit(_corrupt)", "jit(_augment)"}  # no part of the computation


def table(text: str) -> pd.DataFrame:
    """Tabulates the operations that a program executes.

    `text` is `jax.stages.Compiled.as_text()`. A row for each operation: source, result (its type), times (it runs), exact
    (False if `times` is only a bound), and the `COSTS` of one run: cycles (0 where the compiler estimates none), traffic (bytes
    to and from the large memory), kernels, trips, gathers (and scatters, also inside fusions), collectives.
    """
    program, rows = _Program(text), []
    for operation, times, exact, source in program.executed(program.entry, 1, True, ""):
        kernel = program.inside(operation.called("calls")) if operation.code == "fusion" else [operation]
        costs = (
            operation.cycles,
            _traffic(program, operation),
            operation.works and not operation.code.endswith("-start"),
            program.trips(operation)[0] if operation.code == "while" else 0,
            sum(o.code in ("gather", "scatter") for o in kernel),
            bool(_COLLECTIVE.fullmatch(operation.code)),
        )
        result = re.sub(r"\{[^}]*\}", "", operation.type).strip("()")
        rows.append((source or operation.code, result, times, exact, *map(int, costs)))
    return pd.DataFrame(rows, columns=["source", "result", "times", "exact", *COSTS])


def totals(operations: pd.DataFrame) -> pd.Series:
    """Adds up the `COSTS` of all runs of all operations."""
    return operations[list(COSTS)].mul(operations["times"], axis=0).sum()


def costliest(operations: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Groups operations by columns: `COSTS`, and `share` of all cycles, or of the traffic where no cycles are known."""
    costs = operations[list(COSTS)].mul(operations["times"], axis=0)
    groups = costs.groupby([operations[name] for name in by], sort=False).sum()
    weights = groups["cycles" if groups["cycles"].any() else "traffic"]
    return groups.assign(share=weights / max(1, weights.sum())).sort_values("share", ascending=False, kind="stable")


class _Operation(NamedTuple):
    """A line of the text: `%name = type code(argument), attributes`."""

    name: str
    type: str
    code: str
    argument: str
    attributes: str
    root: bool

    @property
    def operands(self):
        return re.findall(r"%([\w.\-]+)", self.argument)

    @property
    def source(self):
        """The last two names of its place in the source, `vmap(fft)/mul`; "" where the text has none."""
        parts = self.found(r'op_name="([^"]*)"', "").split("/")[1:]
        return "/".join([part for part in parts if part not in _WRAPPERS][-2:])

    @property
    def cycles(self):
        return int(self.found(r'"estimated_cycles":"(\d+)"', 0))

    @property
    def works(self):
        """Whether it is a kernel."""
        return not _IDLE.fullmatch(self.code) and not _IDLE_CALL.search(self.attributes)

    def found(self, pattern, default=None):
        match = re.search(pattern, self.attributes)
        return match[1] if match else default

    def called(self, *attributes):
        """Gives the name of the computation in the first of these attributes that the line has."""
        return self.found(rf"\b(?:{'|'.join(attributes)})=%?([\w.\-]+)")


class _Program:
    """Lists of operations by the name of their computation, and the name of the first computation to run."""

    def __init__(self, text):
        self.computations, self.entry = {}, None
        for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
            if header := _HEADER.match(line):
                operations = self.computations.setdefault(header[2], [])
                self.entry = header[2] if header[1] else self.entry
            elif (parts := _OPERATION.match(line)) and self.computations:
                operations.append(_operation(parts[2], parts[3], parts[1] is not None))
        if self.entry is None:
            raise ValueError("expected the text of a compiled program with an ENTRY computation, found none")
        self.types = {o.name: o.type for listed in self.computations.values() for o in listed}

    def executed(self, name, times, exact, source):
        """Yields (operation, times it runs, whether that is exact, source) for a computation and the loops, branches
        and calls in it. A fusion is one kernel. A conditional counts as its branch with most cycles.
        """
        for operation in self.computations[name]:
            place = operation.source or source
            trips, known = self.trips(operation) if operation.code == "while" else (1, True)
            yield operation, times, exact and known, place
            if operation.code in ("while", "call", "async-start"):
                body = operation.called("body", "calls", "to_apply")
                if body in self.computations:
                    yield from self.executed(body, times * trips, exact and known, place)
            elif operation.code == "conditional":
                names = re.findall(r"[\w.\-]+", operation.found(r"branch_computations=\{([^}]*)\}", ""))
                names = names or map(operation.called, ("true_computation", "false_computation"))
                branches = [list(self.executed(branch, times, exact, place)) for branch in names]
                yield from max(branches, key=lambda rows: sum(row[1] * row[0].cycles for row in rows))

    def trips(self, loop):
        """(trips of a `while`, whether that is exact): from `known_trip_count`, or the constant with which the
        condition compares its counter.
        """
        if known := loop.found(r'"known_trip_count":\{"n":"(\d+)"'):
            return int(known), True
        condition = self.inside(loop.called("condition"))
        constants = [o for o in condition if o.code == "constant" and re.match(r"[su]\d", o.type)]
        bounds = [int(o.argument) for o in constants if o.argument.isdecimal()]
        compares = sum(o.code == "compare" for o in condition)
        return (max(bounds), compares == 1) if bounds and compares else (1, False)

    def inside(self, name):
        """The operations of a computation and of all computations that it calls; none of an unknown name."""
        own = self.computations.get(name, [])
        return [inner for o in own for inner in (o, *self.inside(o.called("calls", "to_apply")))]


def _traffic(program, operation):
    """Bytes to and from the large memory; an array of which only slices are read or updated counts with these slices."""
    if operation.code in ("copy-done", "slice-done"):
        return _bytes(operation.type, on_chip=True)
    if not operation.works or operation.code.endswith("-start"):
        return 0
    body = program.computations.get(operation.called("calls"), [operation])
    sizes, fused = [_bytes(program.types[name]) for name in operation.operands], body != [operation]
    if not fused and operation.code in _PARTIAL:
        sizes[0] = _bytes(operation.type) if operation.code in _SLICES else 0
    for parameter in (o for o in body if o.code == "parameter" and fused):
        place, uses = int(parameter.argument), [o for o in body if parameter.name in o.operands]
        if all(o.code in _PARTIAL and o.operands[0] == parameter.name for o in uses):
            slices = sum(_bytes(o.type, on_chip=True) for o in uses if o.code in _SLICES)
            sizes[place] = min(sizes[place], slices)
    written, last = _bytes(operation.type), next((o for o in body if o.root), operation)
    if last.code == "dynamic-update-slice":
        update = next((o for o in body if o.name == last.operands[1]), None)
        written = min(written, _bytes(update.type, on_chip=True)) if update else 0
    return sum(sizes) + written


def _bytes(type_text, on_chip=False):
    """Bytes of all arrays of a type; arrays in on-chip memory count only with `on_chip`."""
    return sum(
        max(1, int((re.search(r"\d+", kind) or "8")[0]) // 8) * math.prod(map(int, filter(None, shape.split(","))))
        for kind, shape, layout in _ARRAY.findall(type_text)
        if on_chip or not _ON_CHIP.search(layout)
    )


def _operation(name, text, root):
    end = _closing(text) if text.startswith("(") else text.index(" ")
    type_text, (code, _, text) = text[:end], text[end:].lstrip().partition("(")
    end = _closing("(" + text) - 1
    return _Operation(name, type_text, code, text[: end - 1], text[end:], root)


def _closing(text):
    """The place after the parenthesis that closes the first one."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1
    raise ValueError(f"expected as many closing parentheses as opening ones, found {text[:80]!r}")
