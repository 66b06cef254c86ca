"""Comparisons: models, studies, feature extractors.

- `models`: one model against another, gains in corruption error with paired standard errors
- `mixtures`: gains of models trained on whole benchmarks; mixtures.csv
- `studies`: do two overlap matrices of the same corruptions agree?
- `set_means`, `set_errors`: means over sets of corruptions, the command tools.set_means
- `balance_table`: models each trained with one corruption of a benchmark; the command tools.balance
- `files`: comparison.json of two studies, the command tools.compare
- `several`: the same of three studies or more, and their matrices side by side
"""
