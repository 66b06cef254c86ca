"""The HTML page of an overlap study and its figures for print (the command tools.report).

- `inputs`: reads a workdir and computes what follows from its answers
- `document`: renders the page from `templates/`, with the values of `matrices`, `benchmark` and `further`
- `warnings`: sentences on the limits of the numbers
- `study_figures`: the figures, for the page and for print
- `samples`: sample pictures of corruptions (imports JAX)
"""
