"""Chips that are not there, and what their compilers say of programs for them.

    machine = machines.find("v5e-8")
    lowered = machine.target.lower(function, *shapes_on(machine.target.devices(8)))
    compiled, seconds = machine.target.compile(lowered)
    costs.of_program(hlo.parse(compiled.as_text()))

targets.py   the chips: how to describe one to its compiler; its peak, clock, bandwidth and memory
gpus.py      what a GPU's compiler must be told of a GPU that is not there
machines.py  several chips by the name they are rented under: v5e-8, v4-32, h200-8
hlo.py       the text of a compiled program as operations, each carried out so many times
costs.py     what they add up to: cycles, loop trips, kernels, gathers, bytes
products.py  how many operations its convolutions and matrix products take

Nothing is run on a chip: all numbers are by the compiler's model, none is measured.
"""
