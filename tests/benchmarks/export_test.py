"""The table of other compilers says what their programs give, or what they do not take; with stand-ins for compilers."""

import jax
import numpy as np
import pytest

from benchmarks import export


@pytest.mark.parametrize("form", ["corrupt", "apply"])
def test_a_program_that_gives_other_pixels_is_told_from_ours(form, monkeypatch):
    def run(offset):
        monkeypatch.setattr(export, "by_iree", lambda f, arguments: np.asarray(jax.jit(f)(*arguments)) + offset)
        return export.attempt("noc/border", "iree", form, 16)

    assert run(0) == export.YES
    step = 20 if form == "corrupt" else 20 / 255
    assert run(np.uint8(step) if form == "corrupt" else np.float32(step)) != export.YES


def test_an_error_is_shortened_to_what_is_not_taken(monkeypatch):
    def refused(function, arguments):
        raise NotImplementedError("[converter] No plugins registered for primitive 'platform_index'")

    monkeypatch.setattr(export, "by_onnx", refused)
    assert export.attempt("noc/border", "onnx", "apply", 16) == "platform_index"
    assert export.reason("x.mlir:9:1: error: failed to legalize operation 'stablehlo.fft' here") == "stablehlo.fft"
