"""Forked children, in which JAX cannot compute. The face imports this, so that each fork after `import corruptions` is noticed."""

import os
import sys

_jax_had_started = False
_forked = False


def jax_started() -> bool:
    """Whether JAX runs in this process, with the devices that it found; False where this JAX does not tell.

    JAX has no public way to ask: `jax.extend.backend.backends` starts it. Without the private one nothing is refused, and
    JAX's own warning of the fork is all that a user sees.
    """
    try:
        return bool(sys.modules["jax._src.xla_bridge"].backends_are_initialized())
    except (KeyError, AttributeError, TypeError):  # not imported yet, or another release
        return False


def refuse_forked() -> None:
    """Raises RuntimeError in a child that was forked after JAX had started: JAX's threads are missing there, and the
    first computation would hang.

    Children that were spawned, that call exec, or whose parent never computed with JAX may go on.
    """
    if _forked:
        raise RuntimeError(
            "expected a process in which JAX can compute, found a child that was forked after JAX had started, where it "
            "hangs; start workers with multiprocessing.get_context('spawn') (PyTorch: DataLoader(..., "
            "multiprocessing_context='spawn')), or corrupt in the parent, batches that the workers have collated"
        )


def _before_fork() -> None:
    """Notes in the parent, where JAX's lock can be waited for, whether a backend is running."""
    global _jax_had_started
    _jax_had_started = jax_started()


def _after_fork_in_child() -> None:
    global _forked
    _forked = _forked or _jax_had_started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
