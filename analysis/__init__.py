"""From tables of counts to scores, overlap, benchmarks and figures: pure functions and their files.

tables     counts.csv, scores.csv, overlap.csv, overlap_long.csv: strict reading, atomic writing
matrices   counts -> arrays of accuracies [seeds, models, conditions]
scores     accuracy, robustness, raw and relative corruption error, mCE
references AlexNet's published errors, by name
overlap    robustness gain, directed transfer, overlap score, standard errors
bootstrap  resampling of test images
balance    mean overlap, balance and coverage of a benchmark
selection  Algorithm 1, threshold sweep, stability under resampling
figures    heatmap, balance bars, threshold sweep
"""
