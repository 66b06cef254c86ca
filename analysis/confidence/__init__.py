"""Confidence of models against their accuracy: likelihood, calibration, ranks.

metrics       each metric of N answers
temperature   temperature scaling, vector scaling, means of networks
cells         the metrics of every model under every condition, and their means as published
resampling    intervals and paired differences over base images
figures       accuracy against severity, reliability, risk against coverage
"""
