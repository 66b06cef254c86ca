"""Results of a scheme study: what training with each augmentation scheme brings.

- `table`: errors of each scheme on each benchmark, over seeds
- `corruptions`: errors on each corruption, over seeds
- `transforms`: error against the number of transforms of stored schemes
"""
