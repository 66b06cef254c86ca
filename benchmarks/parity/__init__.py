"""The parity report: how far our ImageNet-C is from the original, at every severity.

__main__.py     the command, `python -m benchmarks.parity`
measures.py     differences of pixels, of distributions, of a classifier's error rates
references.py   results of the original's definitions for our draws
report.py       writes docs/parity.md
"""
