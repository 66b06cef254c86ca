"""The HTML page of an overlap study and its figures for print (the command tools.report).

- `inputs`: the result files of a workdir, read strictly and held against each other
- `document`: the page put together from its sections
- `study_page`, `matrices`, `benchmark`, `optional`, `errors`: the sections
- `warnings`: what to be careful about
- `grid`: a matrix as an HTML table; `svg`: small charts; `html`: elements and the page around them
- `study_figures`: the figures; `figure_files`: the folder of them for print
- `samples`: sample pictures of corruptions (alone needs JAX)
- `page/`: skeleton, style and script, put into the one HTML file
"""
