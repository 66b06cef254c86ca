"""Registers the project's datasets, as config.imports of its config files does."""

import projects.structural.datasets  # noqa: F401
