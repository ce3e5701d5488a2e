"""Programs as text: shapes, operands, and how often a computation runs."""

import pytest

from t2t.planning import hlo

PROGRAM = """\
HloModule jit_step, is_scheduled=true

%inside (p.0: f32[8,4,6], p.1: s32[]) -> f32[4,6] {
  %p.0 = f32[8,4,6]{2,1,0} parameter(0)
  %p.1 = s32[]{:T(128)} parameter(1)
  %zero = s32[] constant(0)
  %slice = f32[1,4,6]{2,1,0} dynamic-slice(%p.0, %p.1, %zero, %zero), dynamic_slice_sizes={1,4,6}
  ROOT %flat = f32[4,6]{1,0} bitcast(%slice)
}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%body (state: (s32[], f32[5,4], f32[8,4,6])) -> (s32[], f32[5,4], f32[8,4,6]) {
  %state = (s32[], f32[5,4]{1,0:T(8,128)}, f32[8,4,6]{2,1,0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %h = f32[5,4]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %w = f32[8,4,6]{2,1,0} get-tuple-element(%state), index=2
  %layer = f32[4,6]{1,0} fusion(%w, %i), kind=kLoop, calls=%inside, backend_config={"estimated_cycles":"7"}
  %product = f32[5,6]{1,0} dot(%h, %layer), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %total = f32[5,6]{1,0} all-reduce(%product), channel_id=1, replica_groups=[2,4]<=[8], to_apply=%add
  ROOT %out = (s32[], f32[5,4]{1,0}, f32[8,4,6]{2,1,0}) tuple(%next, %h, /*index=2*/%w)
}

%condition (state.1: (s32[], f32[5,4], f32[8,4,6])) -> pred[] {
  %state.1 = (s32[], f32[5,4]{1,0}, f32[8,4,6]{2,1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%state.1), index=0
  %limit = s32[] constant(8)
  ROOT %less = pred[] compare(%i.1, %limit), direction=LT
}

ENTRY %main (h: f32[5,4], w: f32[8,4,6]) -> f32[5,4] {
  %h.0 = f32[5,4]{1,0:T(8,128)} parameter(0)
  %w.0 = f32[8,4,6]{2,1,0} parameter(1)
  %start = s32[] constant(2)
  %begin = (s32[], f32[5,4]{1,0}, f32[8,4,6]{2,1,0}) tuple(%start, %h.0, %w.0)
  %loop = (s32[], f32[5,4]{1,0}, f32[8,4,6]{2,1,0}) while(%begin), condition=%condition, body=%body
  %kept = bf16[5,4]{1,0:T(8,128)(2,1)S(1)} convert(%h.0)
  ROOT %done = f32[5,4]{1,0} get-tuple-element(%loop), index=1
}
"""


def test_instructions():
    program = hlo.parse(PROGRAM)
    assert program.entry == "main"
    body = program.computations["body"].instructions
    assert body["out"].operands == ("next", "h", "w") and body["out"].is_root
    assert [array.dims for array in body["state"].arrays] == [(), (5, 4), (8, 4, 6)]
    assert body["layer"].called("calls") == ("inside",) and body["total"].called("to_apply") == ("add",)
    assert body["product"].integers("lhs_contracting_dims") == (1,)
    kept = program.computations["main"].instructions["kept"].arrays[0]
    assert (kept.dtype, kept.bytes, kept.is_in_hbm) == ("bf16", 40, False)


def test_a_loop_runs_as_often_as_it_says():
    """From 2, where its state begins, to 8."""
    uses = {use.computation.name: use for use in hlo.parse(PROGRAM).uses()}
    assert {name: use.times for name, use in uses.items()} == {"main": 1, "body": 6, "inside": 6}
    assert uses["inside"].is_fused and not uses["body"].is_fused


def test_a_stated_count_goes_before():
    text = PROGRAM.replace("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"11"}}')
    assert {use.computation.name: use.times for use in hlo.parse(text).uses()}["body"] == 11


def test_a_limit_may_come_with_the_state():
    text = PROGRAM.replace("%limit = s32[] constant(8)", "%limit = s32[] get-tuple-element(%state.1), index=0")
    text = text.replace("%i.1 = s32[] get-tuple-element(%state.1), index=0", "%i.1 = s32[] constant(0)")
    assert {use.computation.name: use.times for use in hlo.parse(text).uses()}["body"] == 2


def test_a_count_that_is_not_written_down_is_one():
    text = PROGRAM.replace("direction=LT", "direction=NE")
    assert {use.computation.name: use.times for use in hlo.parse(text).uses()}["body"] == 1


def test_other_text_is_refused():
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.parse("hello")
