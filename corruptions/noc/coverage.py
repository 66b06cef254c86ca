"""`coverage_2026`: what Algorithm 1 selected from 48 candidates on CIFAR-10. Other test images or trainings give other sets
(docs/coverage.md).
"""

from corruptions.core.registry import register_benchmark

register_benchmark(
    "coverage_2026",
    ("noc/rain", "noc/border", "noc/shear", "noc/elastic", "noc/brightness", "noc/hue", "laion_c/glitched"),
)
