"""The parity report: how far our ImageNet-C is from the original, at every severity.

__main__.py     the command, `python -m benchmarks.parity`
measures.py     differences of pixels and of distributions
errors.py       error rates of a classifier on our images and on the peer's
references.py   what the original gives for our draws
peer.py         makes the peer's images, in a Python of its own
report.py       writes docs/parity.md
"""
