"""Studies that stand on the core and are never imported by it; each has a README and tests of its own."""
