"""Training and evaluation: state, step, loop, checkpoints, mesh, studies."""
