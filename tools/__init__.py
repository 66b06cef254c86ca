"""Commands beside the four at the top, one a file: `python -m tools` lists them."""
