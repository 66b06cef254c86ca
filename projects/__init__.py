"""Studies that stand on the core and are never imported by it; each has its own README and tests."""
