"""A study before any money is spent on it: `python -m tools.plan` and `benchmarks.compiled.studies`.

plan        the study on a machine: its programs, memory, hours, checkpoints
study       what a config asks for: models, rounds, images
asked       what a compiler says of a program, or an estimate where none is installed
programs    the programs, with shapes in place of arrays
text        a plan as people read it
"""
