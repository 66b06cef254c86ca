"""The HTML page of an overlap study and its figures for print (the command tools.report).

- `inputs`: reads a workdir and computes everything that a report shows from its answers
- `charts`: the figures, each drawn once for page and print
- `document`: renders the page from `templates/`, with sentences on the limits of the numbers; `further` has the results
  that not every study has
"""
