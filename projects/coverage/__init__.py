"""What do benchmarks of corruptions leave uncovered? Candidates of five benchmarks in one overlap study.

__main__.py    trains and evaluates the models one after another
bank.py        tiles for two corruptions of LAION-C
held_out.py    5,000 training images as test images, on which the recipe was chosen
results.py     writes the tables, the figures and docs/coverage.md from the answers
tables.py      reads the answers; tables of models, candidates and mixtures
benchmarks.py  tables of what benchmarks cover, balance, transfers, selection, severities
page.py        writes the tables as Markdown, and numbers of sentences, into the page
"""

CONFIDENT = ("standard", 0)
"""(model, seed) whose confidence the answers keep; of all others they keep a bit."""
