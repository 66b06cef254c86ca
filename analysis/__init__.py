"""Computes tables, scores, benchmarks and figures from answers of models. Trains nothing.

- `answers`: which test images each model answers correctly and how surely, one file per condition
- `trained`: digests of the trained models of a workdir, by which answers know their models
- `frames`: counts of correct answers, accuracy, robustness; tidy pandas frames behind every table; CSV, Markdown, LaTeX; intervals; numbers as text
- `correlation`: weighted correlations, for bootstraps
- `references`: the benchmarks of papers, and AlexNet's published errors
- `errors/`: mean error, CE and relative CE of models on benchmarks; tables by benchmark and by corruption, sets, balance
- `overlap/`: gain, directed transfer, overlap score and their standard errors; studies, mixtures, comparisons
- `selection/`: Algorithm 1, threshold sweep, stability, coverage, categories; benchmark.json, coverage.json
- `distances/`: MSD and MMD between schemes and corruptions, their correlation with error
- `cbar/`: the search that made ImageNet-C-bar
- `confidence/`: likelihood, calibration, ranks of right answers; temperature scaling; intervals over images; pictures
- `schemes`: gains of training with each augmentation scheme
- `calibration`: severity ranges that hit target robustness
- `exits`: networks with several answers that stop at the first confident one
- `cells`: the cells of a matrix in a figure
- `figures`: overlap and transfer with the tree of clusters, bars, threshold sweep; PNG, PDF and SVG
- `gallery`: a picture of a benchmark (the command `python -m analysis.gallery`), sample images of a study
- `report/`: the HTML page of a study and its figures for print
"""
