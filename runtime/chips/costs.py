"""What the operations of a compiled program add up to."""

import collections
import dataclasses

from runtime.chips.hlo import Operation, Program, array_bytes

_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
_NO_WORK = {  # a name for a value, a constant, or what only calls others
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
    *("while", "conditional", "call", "opt-barrier", "optimization-barrier", "add-dependency"),
}
_NO_WORK_TARGETS = ("ConcatBitcast", "GatherScatterIndicesBitpacked", "AllocateBuffer", "AssumeGatherIndicesInBound")
_PARTS = ("slice", "dynamic-slice", "gather")
_UPDATED = (*_PARTS, "dynamic-update-slice")  # of their first operand they read a part, or nothing


@dataclasses.dataclass(frozen=True)
class Costs:
    """Of one call of a program on one chip.

    Attributes:
      cycles: the compiler's estimates, 0 where it gives none.
      trips: of all loops, one after another; inner loops count in every trip of outer ones.
      exact: whether all trips are known; else there may be fewer, or more.
      kernels, gathers, collectives: how many are carried out. Gathers include scatters, and those
        inside fusions.
      traffic: bytes that kernels read from and write to the large memory.
      shares: {operation, as the source names it: its part of the cycles, else of the traffic}.
    """

    cycles: int
    trips: int
    exact: bool
    kernels: int
    gathers: int
    collectives: int
    traffic: int
    shares: dict[str, float]


def of_program(program: Program) -> Costs:
    """Adds up the operations, loops multiplied by their trips."""
    numbers = collections.Counter()
    cycles_of, traffic_of = collections.Counter(), collections.Counter()
    all_exact = True
    for operation, times, exact, source in program.executed():
        all_exact &= exact
        if operation.code == "while":
            trips, known = program.trips(operation)
            numbers["trips"] += times * trips
            all_exact &= known
        name = source or operation.code
        cycles_of[name] += times * operation.cycles
        traffic_of[name] += times * traffic(program, operation)
        numbers["kernels"] += times * (_works(operation) and not operation.code.endswith("-start"))
        numbers["collectives"] += times * (operation.code.removesuffix("-start") in _COLLECTIVES)
        numbers["gathers"] += times * sum(o.code in ("gather", "scatter") for o in program.kernel(operation))
    weights = cycles_of if cycles_of.total() else traffic_of
    shares = {name: weight / max(1, weights.total()) for name, weight in weights.most_common() if weight}
    return Costs(
        cycles_of.total(),
        numbers["trips"],
        all_exact,
        numbers["kernels"],
        numbers["gathers"],
        numbers["collectives"],
        traffic_of.total(),
        shares,
    )


def _works(operation: Operation) -> bool:
    if operation.code in _NO_WORK or operation.code.endswith("-done"):
        return False
    return not any(f'custom_call_target="{name}"' in operation.attributes for name in _NO_WORK_TARGETS)


def traffic(program: Program, operation: Operation) -> int:
    """Counts the bytes between the large memory and the chip: of operands, or the parts read of them,
    and of results, or the parts written.

    Args:
      program: the whole program.
      operation: one that is executed.
    """
    if operation.code in ("copy-done", "slice-done"):
        return array_bytes(operation.type, on_chip=True)
    if not _works(operation) or operation.code.endswith("-start"):
        return 0
    given = [array_bytes(program.types[name]) for name in operation.operands]
    inner = operation.called("calls")
    body = program.computations.get(inner, [operation])
    return _written(operation, body) + sum(_read(given, operation, body))


def _written(operation, body):
    """Bytes of the result; where the last step puts a piece into an array, of the piece (none by
    itself, outside of a fusion).
    """
    last = next((o for o in body if o.root), operation)
    whole = array_bytes(operation.type)
    if last.code != "dynamic-update-slice":
        return whole
    piece = next((o for o in body if o.name == last.operands[1]), None)
    return min(whole, array_bytes(piece.type, on_chip=True)) if piece else 0


def _read(given, operation, body):
    """Bytes of each operand; of one that is only sliced or gathered from, of what is taken."""
    if body == [operation]:
        if operation.code not in _UPDATED:
            return given
        return [array_bytes(operation.type) if operation.code in _PARTS else 0, *given[1:]]
    found = list(given)
    for parameter in (o for o in body if o.code == "parameter"):
        place, uses = int(parameter.argument), [o for o in body if parameter.name in o.operands]
        if all(o.code in _UPDATED and o.operands[0] == parameter.name for o in uses):
            taken = sum(array_bytes(o.type, on_chip=True) for o in uses if o.code in _PARTS)
            found[place] = min(given[place], taken)
    return found
