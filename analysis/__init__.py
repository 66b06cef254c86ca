"""From tables of counts to scores, overlap, benchmarks and figures: pure functions and their files.

- `tables`, `overlap_files`: counts.csv, scores.csv, overlap.csv, overlap_long.csv; strict reading, atomic writing
- `matrices`: counts -> arrays of accuracies [seeds, models, conditions]; scores.csv and errors.csv
- `scores`, `references`: accuracy, robustness, raw and relative corruption error, mCE; AlexNet's published errors
- `overlap`, `bootstrap`: gain, directed transfer, overlap score and standard errors; resampling of test images
- `balance`, `coverage`: mean overlap and balance of a benchmark; which corruptions it covers, with p values
- `comparison`, `agreement`: one model against another; one overlap matrix against another
- `categories`, `nk_benchmarks`: clusters of corruptions, and random benchmarks of given balance
- `selection`, `cliques`: Algorithm 1, threshold sweep, stability under resampling
- `selection_text`: what select_noc.py prints
- `calibration`: severity ranges that hit target robustness; `mixtures`: gains of models trained on benchmarks
- `distances`, `msd_files`, `msd_figures`: MSD and MMD between schemes and corruptions, their correlation with error
- `scan_files`, `cbar_groups`, `cbar_half_sets`, `cbar_selection`: the search that made ImageNet-C-bar
- `bridge`: does feature distance predict overlap?
- `figures`, `figures_study`: heatmap, balance bars, threshold sweep, dendrogram
- `report_*`, `report_page/`: the HTML page of a study (`report_samples` alone needs JAX); `rounding`: digits
"""
