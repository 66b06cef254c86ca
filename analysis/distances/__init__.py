"""Distances between augmentation schemes and corruptions in feature space.

- `msd_mmd`: minimal sample distance, distance of the means, their spread and rank correlation
- `results`: distances and errors over severities, their correlation across schemes and within a scheme, two networks
  compared
- `experiments`: mixtures of two corruptions, subsets of transforms, resampling of images and draws
- `figures`: error against distance, mixtures, spread, errors of schemes
"""
