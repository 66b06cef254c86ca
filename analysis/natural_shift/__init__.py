"""Does robustness to corruptions predict robustness to natural shifts?

- `table`: accuracies of models on clean, corrupted and naturally shifted images
- `testbed`, `timm`, `counts`: three sources of such a table
- `resampling`: correlations and lines under resampled models
- `effective`: effective robustness, what a model has beyond its clean accuracy
- `prediction`: how well a benchmark predicts robustness to natural shifts
- `benchmarks`: which benchmarks of n categories and k corruptions each predict it best
- `study`, `text`, `figures`, `files`: what the command tools.natural_shift computes, prints, draws
  and writes
"""
