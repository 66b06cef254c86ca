"""Distances between augmentation schemes and corruptions in feature space.

- `msd_mmd`: minimal sample distance, distance of the means, their spread and rank correlation
- `subsets`: which of many transforms are closest to a set of corruptions
- `files`: msd.csv, correlations.csv and features.npz
- `resampling`: how far distances vary with the images and the draws
- `text`: what the commands print of them
- `by_scheme`: distances and errors over severities, and their correlation across schemes
- `correlated`: distance and error together
- `figures`: scatter panels of error against distance, and the toy experiment
"""
