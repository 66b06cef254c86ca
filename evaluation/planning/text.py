"""A plan as people read it."""

import math

from evaluation.planning.plan import Hours, Plan, Row
from training.checkpoint import KEPT
from training.memory import gib

COLUMNS = ("program", "compile CPU s", "GiB a chip", "images/s a chip")


def text(plan: Plan) -> str:
    """Writes a plan as Markdown: the study, a table of its programs, what all of it takes."""
    machine = plan.machine
    lines = [
        f"{machine.name}: {machine.chips} x {machine.target.kind} of {gib(machine.target.memory)} that JAX may use"
        f"{'' if machine.one_host else ', several hosts: one model at a time on all of them'}; {source(plan)}",
        "",
        *(f"- {rounds(plan, row)}" for row in range(len(plan.groups))),
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(f"| {' | '.join(cells(row))} |" for row in plan.rows),
        "",
        f"- programs: {len(plan.rows)}, {sum(row.answer.compile_seconds for row in plan.rows):,.0f} CPU s to compile",
        *(f"- memory of a chip in {row.name}: {memory(plan, number)}" for number, row in enumerate(plan.training)),
        f"- checkpoints: {checkpoints(plan) / 1e9:,.1f} GB, the newest {KEPT} of every model",
        f"- training images: {plan.images.train_bytes / 1e9:,.1f} GB, {reading(plan)}",
        f"- hours{'' if machine.target.clock else ', at least'}: {', '.join(f'{part} {span(hours)}' for part, hours in plan.hours.items())}; "
        f"in all {span(sum(plan.hours.values(), Hours()))}",
    ]
    return "\n".join(lines)


def source(plan: Plan) -> str:
    """Says where the numbers come from."""
    target = plan.machine.target
    if target.installed:
        return f"seconds by {target.compiler()}'s account ({target.model}); nothing ran"
    return (
        f"no compiler for it is installed ({target.remedy}), so an estimate: between the products at the chip's "
        "peak, and every operation as it is written reading and writing its arrays at its bandwidth, as JAX counts "
        "both in the program lowered for a CPU; nothing ran"
    )


def rounds(plan: Plan, row: int) -> str:
    """Says how a group of models trains."""
    group = plan.groups[row]
    number, steps = len(group.rounds()), group.plan.total_steps
    return (
        f"{len(group.configs)} models, {group.together} at once, {group.chips} chip{'s' * (group.chips > 1)} each: "
        f"{number} round{'s' * (number > 1)} of {steps:,} steps of {group.block.images.shape[1]} images, "
        f"{steps_per_second(plan.training[row])} steps/s of each model"
    )


def cells(row: Row) -> list[str]:
    """Makes the cells of a program."""
    answer = row.answer
    if answer.refused:
        return [row.name, "-", "-", f"not compiled: {answer.refused}".replace("|", "/")]
    compiled = f"{answer.compile_seconds:.1f}" if answer.compile_seconds else "-"
    held = f"{answer.memory / 2**30:.2f}" if answer.memory else "-"
    return [row.name, compiled, held, _between(row.images, answer, "{:,.0f}")]


def steps_per_second(row: Row) -> str:
    """Writes how many steps a second a model takes."""
    return "?" if row.answer.refused else _between(1, row.answer, "{:.3g}")


def memory(plan: Plan, row: int) -> str:
    """Writes the memory of a chip while a group trains, against what there is."""
    answer, limit = plan.training[row].answer, plan.machine.target.memory
    if answer.refused:
        return f"does not fit {gib(limit)}, or is not compiled"
    needed = plan.memory(row)
    least = "" if answer.memory else "without the steps' own, "
    return f"{least}{gib(needed)} of {gib(limit)}{'' if needed <= limit else ': does not fit'}"


def checkpoints(plan: Plan) -> float:
    """Counts the bytes of the checkpoints that the study leaves."""
    return KEPT * sum(plan.checkpoint_bytes(row) * len(group.configs) for row, group in enumerate(plan.groups))


def reading(plan: Plan) -> str:
    """Says whether the training images stay on the chips, and else what the host must read."""
    if plan.resident >= plan.images.train_bytes:
        return "on every chip"
    row, group = plan.training[0], plan.groups[0]
    if row.answer.refused:
        return "streamed"
    images = group.block.images.shape[1] * group.together
    size = 3 * plan.images.train_side**2 / 1e9
    return (
        f"streamed: the hosts read {_between(images, row.answer, '{:,.0f}')} images/s "
        f"({_between(images * size, row.answer, '{:.2g}')} GB/s), or the chips wait"
    )


def span(hours: Hours) -> str:
    """Writes hours, or the two bounds between which they are; "?" where a compiler made no program."""
    if not math.isfinite(hours.most):
        return "?"
    least, most = f"{hours.least:.3g}", f"{hours.most:.3g}"
    return least if least == most else f"{least} to {most}"


def _between(number, answer, style):
    """A number in the seconds of a batch, each second."""
    least, most = (style.format(number / seconds) for seconds in (answer.most, answer.least))
    return least if least == most else f"{least} to {most}"
