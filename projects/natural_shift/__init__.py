"""Robustness to natural distribution shifts."""
