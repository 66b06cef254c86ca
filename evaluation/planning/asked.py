"""What is known of a program before it runs: by the chip's compiler or, where none is installed, by
an estimate between two bounds.
"""

import dataclasses
import hashlib
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh

from evaluation.planning.programs import Program
from runtime import compiles
from runtime.chips import costs, hlo
from runtime.chips.machines import Machine
from runtime.files import read_json, write_json
from training.memory import beyond_arguments

Build = Callable[[Mesh, int], Program]
"""(mesh (1, D), parts) -> the program on these chips, each batch a part of the whole one."""
_SHAPE = {"least": float, "most": float, "compile_seconds": float, "memory": int, "refused": str}
# A program that does not fit, an operation that the chip lacks: another try ends alike.
_FINAL = ("RESOURCE_EXHAUSTED", "UNIMPLEMENTED")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a compiler, or the estimate, says of a program.

    Attributes:
      least, most: seconds of one batch, between them; equal by a compiler's model.
      compile_seconds: CPU seconds of the compiler, of all its threads; 0 for an estimate.
      memory: bytes on each chip, arguments among them; 0 where nobody knows.
      refused: why the compiler made no program, then nothing else is known; "" where it did.
    """

    least: float
    most: float
    compile_seconds: float = 0.0
    memory: int = 0
    refused: str = ""


def ask(machine: Machine, chips: int, build: Build) -> Answer:
    """Asks the compiler of a machine's chips, or estimates.

    What a compiler said is kept, with the compilation cache: it is asked once about a program. Errors
    that another try may not meet are not kept.

    Args:
      machine: whose chips they are.
      chips: on which the program runs.
      build: makes it.

    Raises:
      DamagedFileError: what was kept is no answer.
    """
    target = machine.target
    if not target.installed:
        with target.pretended():
            return _estimated(target, build(_mesh(jax.devices("cpu")[:1]), chips))
    with target.pretended():
        program = build(_mesh(target.devices(machine.chips)[:chips]), 1)
    lowered = target.lower(program.function, *program.args, **program.static)
    known = _record(f"{target.account()} {chips} {lowered.as_text()}")
    if known.exists():
        content = read_json(known, remedy="remove it", shape=_SHAPE)
        return Answer(**{name: content[name] for name in _SHAPE})
    answer = _compiled(target, lowered, program, lambda: build(_mesh(jax.devices("cpu")[:1]), chips))
    if not answer.refused or any(name in answer.refused for name in _FINAL):
        write_json(known, dataclasses.asdict(answer))
    return answer


def _compiled(target, lowered, program, share):
    try:
        compiled, seconds = target.compile(lowered)
    except jax.errors.JaxRuntimeError as error:
        return Answer(0.0, 0.0, refused=" ".join(str(error).split())[:300])
    flops = 0.0
    if not target.clock:
        with target.pretended():
            flops = counted(share())[0] * program.batches
    found = costs.of_program(hlo.parse(compiled.as_text()))
    batch = target.seconds(found, flops) / program.batches
    memory = compiled.memory_analysis().argument_size_in_bytes + beyond_arguments(compiled)
    return Answer(batch, batch, seconds, memory)


def _estimated(target, program):
    """Between the products at the chip's peak, and every operation reading and writing its arrays,
    as the program was written, at the bandwidth.
    """
    flops, traffic = counted(program)
    return Answer(flops / target.peak, max(flops / target.peak, traffic / target.bandwidth))


def counted(program: Program) -> tuple[float, float]:
    """Counts operations and bytes of one batch as JAX does in the program lowered for a CPU, where
    the body of a loop counts once.
    """
    found = program.function.lower(*program.args, **program.static).cost_analysis()
    return found["flops"], found["bytes accessed"]


def _mesh(devices):
    return Mesh(np.asarray(devices).reshape(1, -1), ("model", "data"))


def _record(text):
    folder = compiles.cache_folder() / "planned"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
