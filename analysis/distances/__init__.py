"""Distances between augmentation schemes and corruptions in feature space.

- `msd_mmd`: minimal sample distance, distance of the means, their spread and rank correlation
- `subsets`: which of many transforms are closest to a set of corruptions
- `files`: msd.csv, correlations.csv and features.npz
- `by_scheme`: distances and errors over severities, and their correlation across schemes
- `correlated`: distance and error together
- `figures`: scatter panels of error against distance, and the toy experiment
"""
