"""What compilers say of programs for accelerators that are not there.

    pip install -e '.[study,compile_tpu]'
    python -m benchmarks.compiled --target=tpu_v5e                         # every corruption, 224 x 224, batch 128
    python -m benchmarks.compiled --target=tpu_v5e --programs=training     # or schemes, evaluation

targets.py   the chips: how to describe one to its compiler, its clock and bandwidth
programs.py  what is compiled: corruptions, augmentation schemes, evaluation steps, blocks of training steps
hlo.py       the text of a compiled program as operations, each carried out so many times
costs.py     what they add up to: cycles, loop trips, kernels, gathers, bytes
table.py     a row for each program in a Markdown file, which is also what a killed run continues from

Nothing is run on the chip: all numbers are by the compiler's model, none is measured.
"""
