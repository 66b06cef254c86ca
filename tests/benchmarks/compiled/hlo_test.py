"""Compiled programs written by hand, whose operations, trips and bytes are counted by hand."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks.compiled import hlo
from tests.refusing import refuses

NESTED = """HloModule jit_f, entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[8,128]{1,0:T(8,128)}}

FileNames
1 "f.py"

%fused.1 (param_0: f32[8,128], param_1: s32[4]) -> f32[4,128] {
  %param_1 = s32[4]{0:T(128)} parameter(1)
  %param_0 = f32[8,128]{1,0:T(8,128)} parameter(0)
  %gather.1 = f32[2,128]{1,0:T(8,128)} gather(%param_0, %param_1), offset_dims={1}
  %gather.2 = f32[2,128]{1,0:T(8,128)} gather(%param_0, %param_1), offset_dims={1}
  ROOT %concatenate.1 = f32[4,128]{1,0:T(8,128)} concatenate(%gather.1, %gather.2), dimensions={0}
}

%inner_cond (arg.1: (s32[], f32[8,128])) -> pred[] {
  %arg.1 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  ROOT %constant.9 = pred[]{:T(512)} constant(false)
}

%inner_body (arg.2: (s32[], f32[8,128])) -> (s32[], f32[8,128]) {
  %arg.2 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  ROOT %copy.9 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) custom-call(%arg.2), custom_call_target="X", \
backend_config={"window_config":{"estimated_cycles":"7"}}
}

%outer_cond (arg.3: (s32[], f32[8,128], /*index=2*/f32[8,128])) -> pred[] {
  %constant.3 = s32[]{:T(128)} constant(5)
  %arg.3 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}, /*index=2*/f32[8,128]{1,0:T(8,128)}) parameter(0)
  %count.1 = s32[]{:T(128)} get-tuple-element(%arg.3), index=0
  ROOT %less.1 = pred[]{:T(512)} compare(%count.1, %constant.3), direction=LT
}

%outer_body (arg.4: (s32[], f32[8,128], f32[8,128])) -> (s32[], f32[8,128], f32[8,128]) {
  %arg.4 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}, /*index=2*/f32[8,128]{1,0:T(8,128)}) parameter(0)
  %while.2 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) while(%arg.4), condition=%inner_cond, body=%inner_body, \
backend_config={"known_trip_count":{"n":"3"}}
  ROOT %add.4 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) fusion(%while.2), kind=kLoop, calls=%fused.9, \
backend_config={"window_config":{"estimated_cycles":"20"}}
}

ENTRY %main.1 (images.1: f32[8,128], places.1: s32[4]) -> f32[4,128] {
  %images.1 = f32[8,128]{1,0:T(8,128)} parameter(0), metadata={op_name="images"}
  %places.1 = s32[4]{0:T(128)S(1)} parameter(1)
  %while.1 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) while(%images.1), condition=%outer_cond, body=%outer_body, \
metadata={op_name="jit(f)/vmap()/while/steps"}
  %all-reduce.1 = f32[8,128]{1,0:T(8,128)} all-reduce(%images.1), to_apply=%fused.9
  ROOT %fusion.1 = f32[4,128]{1,0:T(8,128)} fusion(%images.1, %places.1), kind=kLoop, calls=%fused.1, \
metadata={op_name="jit(f)/vmap()/body/jit(_take)/gather"}, backend_config={"window_config":{"estimated_cycles":"795"}}
}
"""


def test_loops_in_loops_are_multiplied():
    operations = hlo.table(NESTED)
    kernels, cycles = 5 + 5 * 3 + 2, 5 * 20 + 5 * 3 * 7 + 795
    found = hlo.totals(operations)[["trips", "cycles", "kernels", "gathers", "collectives"]]
    assert found.tolist() == [5 + 5 * 3, cycles, kernels, 2, 1] and operations["exact"].all()
    shares = hlo.costliest(operations, ["source"])["share"]
    assert shares[shares > 0].to_dict() == pytest.approx({"jit(_take)/gather": 0.795, "steps": 0.205})
    assert hlo.costliest(operations, ["source", "result"]).index[0] == ("jit(_take)/gather", "f32[4,128]")


@pytest.mark.parametrize(
    "before, after, trips",
    [  # a second comparison: at most the largest constant; a constant that is no whole number: at least one trip
        ("%count.1, %constant.3", "%count.1, %constant.3)\n  %same.1 = pred[] compare(%count.1, %count.1", 20),
        ("s32[]{:T(128)} constant(5)", "f32[]{:T(128)} constant(5)", 1 + 3),
    ],
)
def test_a_loop_with_an_unknown_number_of_trips_is_marked(before, after, trips):
    operations = hlo.table(NESTED.replace(before, after))
    assert hlo.totals(operations)["trips"] == trips and not operations["exact"].all()


@pytest.mark.parametrize(
    "lines, expected",
    [
        (["%b = f32[16,128]{1,0} negate(%a)"], 2 * 16 * 128 * 4),
        (["%b = f32[16,128]{1,0:T(8,128)S(1)} negate(%a)"], 16 * 128 * 4),  # the result stays on the chip
        (["%b = (f32[16,128]{1,0}, u8[7]{0}) custom-call(%a, %i)"], 2 * 16 * 128 * 4 + 7 + 4),
        (["%b = f32[1,128]{1,0} dynamic-slice(%a, %i, %i), dynamic_slice_sizes={1,128}"], 2 * 128 * 4 + 2 * 4),
        (["%p = f32[2,128]{1,0:S(1)} iota()", "%b = f32[16,128]{1,0} dynamic-update-slice(%a, %p, %i, %i)"], 2 * 4 + 0),
        (["%b = f32[2,128]{1,0} fusion(%a, %i), kind=kLoop, calls=%rows"], 2 * 2 * 128 * 4 + 4),
        (["%s = ((f32[16,128]{1,0}), f32[4,128]{1,0:S(1)}, s32[]) slice-start(%a), slice={[0:4], [0:128]}",
          "%b = f32[4,128]{1,0:S(1)} slice-done(%s)"], 4 * 128 * 4),
        (["%b = f32[128,16]{0,1} bitcast(%a)"], 0),
    ],
)  # fmt: skip
def test_bytes_between_the_large_memory_and_the_chip(lines, expected):
    text = """%rows (x: f32[16,128], n: s32[]) -> f32[2,128] {
  %x = f32[16,128]{1,0} parameter(0)
  %n = s32[] parameter(1)
  ROOT %taken = f32[2,128]{1,0} dynamic-slice(%x, %n, %n), dynamic_slice_sizes={2,128}
}
ENTRY %main (a: f32[16,128], i: s32[]) -> f32[16,128] {
  %a = f32[16,128]{1,0} parameter(0)
  %i = s32[] parameter(1)
  """
    assert hlo.totals(hlo.table(text + "\n  ".join(lines) + "\n}"))["traffic"] == expected


def test_a_program_that_a_compiler_wrote():
    def steps(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) @ c, None), x, None, length=11)[0]

    operations = hlo.table(jax.jit(steps).lower(jax.ShapeDtypeStruct((16, 16), jnp.float32)).compile().as_text())
    assert hlo.totals(operations)["trips"] == 11 and operations["exact"].all()
    assert hlo.totals(operations)["traffic"] >= 11 * 3 * 16 * 16 * 4


def test_a_conditional_counts_as_its_branch_with_most_cycles():
    kernel = '{0} = f32[2]{{0}} negate(%a), backend_config={{"estimated_cycles":"{1}"}}'
    branches = [f"%b{n} (a: f32[2]) -> f32[2] {{\n  %a = f32[2]{{0}} parameter(0)\n  ROOT " + kernel.format("%n", n) + "\n}"
                for n in (30, 50, 40)]  # fmt: skip
    text = """
ENTRY %main (i: s32[], x: f32[2]) -> f32[2] {
  %i = s32[] parameter(0)
  %x = f32[2]{0} parameter(1)
  ROOT %c = f32[2]{0} conditional(%i, %x, %x, %x), branch_computations={%b30, %b50, %b40}
}"""
    text = "\n".join(branches) + text
    assert hlo.totals(hlo.table(text))[["cycles", "kernels"]].tolist() == [50, 1]


def test_an_operation_that_starts_and_ends_apart_counts_once():
    text = """%wrapped (p: f32[8], n: s32[4]) -> f32[4] {
  %p = f32[8]{0} parameter(0)
  %n = s32[4]{0} parameter(1)
  ROOT %g = f32[4]{0} gather(%p, %n), offset_dims={}
}
ENTRY %main (x: f32[8], i: s32[4]) -> f32[4] {
  %x = f32[8]{0} parameter(0)
  %i = s32[4]{0} parameter(1)
  %r = f32[8]{0} all-reduce-start(%x), to_apply=%wrapped
  %d = f32[8]{0} all-reduce-done(%r)
  %s = ((f32[8], s32[4]), f32[4]{0}, s32[]) async-start(%d, %i), calls=%wrapped
  ROOT %e = f32[4]{0} async-done(%s), calls=%wrapped
}"""
    assert hlo.totals(hlo.table(text))[["collectives", "gathers"]].tolist() == [1, 1]


def test_a_text_without_a_program_is_refused():
    refuses(lambda: hlo.table("HloModule jit_f\n"), "ENTRY")
