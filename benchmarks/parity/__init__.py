"""The parity report: how far our ImageNet-C is from the original, at every severity.

__main__.py     the command, `python -m benchmarks.parity`
measures.py     differences of pixels, of distributions, of a classifier's error rates
report.py       writes docs/parity.md
"""
