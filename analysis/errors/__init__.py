"""Errors of models on benchmarks, and the reference that they are divided by.

conditions   what errors were measured under: dataset, size, preprocessing, tables, ranges, levels, frost
reference    errors of a model under such conditions: AlexNet's published ones, a file, an evaluated workdir
choice       which reference an evaluation takes, and what differs from its conditions
images       the stored answers of models, image by image
scores       mean error, CE and relative CE of a model on a benchmark, with standard errors
benchmarks   which benchmarks the counts of a model hold completely
files        errors.csv and errors_summary.csv
summary      what a line of the latter says; needs no JAX
text         the same, printed
flags        --reference and --mismatch of the commands that take a reference
comparison   differences between models on the same images, corrected for their number
joint        several models and benchmarks in one table; markup writes it
"""
