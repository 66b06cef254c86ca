"""Where the cycles of a compiled program go, of one written by hand."""

import pytest

from benchmarks.compiled import cycles
from runtime.chips import hlo
from runtime.chips.targets import TARGETS

V5E = TARGETS["tpu_v5e"]
TEXT = """HloModule jit_f

%cond (c: (f32[])) -> pred[] {
  %c = (f32[]) parameter(0)
  ROOT %no = pred[] constant(false)
}

%body (s: (f32[])) -> (f32[]) {
  %s = (f32[]) parameter(0)
  %x = bf16[1024,1024]{1,0:T(8,128)} constant({...})
  %y = bf16[1024,1024]{1,0:T(8,128)S(1)} convolution(%x, %x), dim_labels=bf_io->bf, \
metadata={op_name="jit(f)/jvp()/dot"}, backend_config={"estimated_cycles":"32000"}
  %z = bf16[1024,1024]{1,0:T(8,128)} negate(%y), metadata={op_name="jit(f)/neg"}, backend_config={"estimated_cycles":"8000"}
  ROOT %t = (f32[]) tuple(%s)
}

ENTRY %main (a: (f32[])) -> (f32[]) {
  %a = (f32[]) parameter(0)
  ROOT %loop = (f32[]) while(%a), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"6"}}
}
"""


def test_cycles_of_one_step_beside_what_products_and_memory_take(tmp_path):
    found = cycles.by_kernel(hlo.parse(TEXT), V5E, batches=3)  # two trips a step
    dot, negation = found["jvp()/dot", "bf16[1024,1024]"], found["neg", "bf16[1024,1024]"]
    assert list(found.values()) == [dot, negation]
    assert (dot.kernels, dot.estimated, negation.estimated) == (2, 64_000, 16_000)
    assert dot.products == pytest.approx(2 * 2 * 1024**3 / V5E.peak * V5E.clock) and negation.products == 0
    # two operands of 2 MiB from the large memory, the result on the chip; the other way round
    assert dot.memory == pytest.approx(2 * 2 * 2**21 / V5E.bandwidth * V5E.clock)
    assert negation.memory == pytest.approx(dot.memory / 2)

    cycles.write(tmp_path / "page.md", "T", "make it", V5E, cycles.table(found))
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert "| **all** |  | 4 | 80,000 | 100.0 % | 32,703 | 23,046 |" in lines
    assert "| **without** |  | 2 | 16,000 | 20.0 % | 0 | 7,682 |" in lines
    assert "| jvp()/dot | bf16[1024,1024] | 2 | 64,000 | 80.0 % | 32,703 | 15,364 |" in lines
