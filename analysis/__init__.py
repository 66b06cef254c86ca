"""From answers of models to tables, scores, benchmarks and figures. Trains nothing.

- `answers`: which test images each model answers correctly, one file per condition
- `lines`: tables as CSV files; strict reading, atomic writing, a digest that tells an edited one
- `tables`: counts.csv and what its conditions are called
- `derived`: counts.csv held against the answers it follows from
- `class_accuracies`: accuracy by class; classes.csv
- `accuracies`: counts -> arrays of accuracies [seeds, models, conditions]; scores.csv
- `errors/`: errors of models on benchmarks and the reference they are divided by; errors.csv,
  errors_summary.csv, joint tables
- `scores`, `references`: accuracy, robustness, raw and relative corruption error, mCE; AlexNet's
  published errors
- `overlap_study`: every table and figure of overlap.py
- `overlap/`: gain, directed transfer, overlap score, their standard errors, balance; overlap.csv,
  overlap_long.csv
- `selection/`: Algorithm 1, threshold sweep, stability, coverage, categories; benchmark.json, coverage.json
- `exits`: networks with several answers that stop at the first sure one
- `comparison/`: one model against another, one overlap matrix against another
- `distances/`: MSD and MMD between schemes and corruptions, their correlation with error
- `cbar/`: the search that made ImageNet-C-bar
- `schemes/`: what training with each augmentation scheme brings; schemes.csv
- `shapes`: what JSON files of a study must hold
- `report/`: the HTML page of a study and its figures for print
- `calibration`: severity ranges that hit target robustness
- `heatmaps`: of overlap and transfer
- `figures`: balance bars, threshold sweep; PNG and PDF
- `gallery`, `scene`: a picture of a benchmark (the command `python -m analysis.gallery`), and the
  scene it shows
- `sweeps`: the table of a sweep over settings and seeds
- `intervals`: of resampled statistics
- `rounding`: numbers as text, with as many digits as their errors leave meaning in
"""
