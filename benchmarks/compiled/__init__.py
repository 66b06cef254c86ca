"""What compilers say of programs for accelerators that are not there.

    pip install -e '.[study,compile_tpu]'
    python -m benchmarks.compiled --target=tpu_v5e                         # every corruption, 224 x 224, batch 128
    python -m benchmarks.compiled --target=tpu_v5e --programs=training     # or schemes, evaluation
    python -m benchmarks.compiled.cycles --target=tpu_v5e resnet18:224:256:1x1   # where its cycles go
    python -m benchmarks.compiled.studies --devices=v5e-8                  # the papers' configs

programs.py  what is compiled: corruptions, augmentation schemes, evaluation steps, blocks of training steps
table.py     a row for each program in a Markdown file, which is also what a killed run continues from
cycles.py    kernels of one program: cycles, beside what their products and their memory take alone
picture.py   two of the tables as a picture
studies.py   the papers' studies as `tools.plan` plans them: memory, speed and hours of training

How a chip is described and a compiled program read: runtime/chips. Nothing is run on the chip: all numbers are by the
compiler's model, none is measured.
"""
