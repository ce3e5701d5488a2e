"""Plans as text and as JSON."""

import dataclasses
import json

import pytest
from planning import runs
from test_architecture import TENSORFLOW, TORCH, loaded_by

from t2t.planning import compiled, report, search, topology
from t2t.planning.collectives import Collective
from t2t.planning.compiled import Overflow, Step
from t2t.planning.topology import GIB
from t2t.planning.work import Work

PLACE = topology.parse("v5e:2x2")


@pytest.fixture(scope="module")
def pieces():
    return compiled.pieces_of(runs.experiment("decoder"), PLACE.stand_ins())


def step(**changes):
    work = Work(matrix_operations=197e9, looped_operations=90e9, bytes=819e6, cycles=3e6, kernels=0)
    exchange = Collective(kind="all-reduce", axes=("data",), group=(0, 1, 2, 3), bytes=9e7, times=2, is_hidden=False)
    values = {"peak": 3 * GIB, "arguments": GIB, "program": 2**20, "xla_operations": 110e9, "seconds": 1.0}
    return Step(**values | {"work": work, "exchanges": [exchange]} | changes)


def test_a_run_that_fits(pieces):
    plan = report.make(pieces, PLACE, step(), price=1.5)
    text = "\n".join(report.text(plan))
    assert plan.fits
    assert "it fits:    3.000 GiB of   15.750 GiB on each chip (19%)" in text
    assert "1.1e+11 a chip with the body of each loop once, 2e+11 as often as they run" in text
    assert "intensity               241 operations a byte (0.8 GB a chip); the chip is balanced at 241" in text
    assert "bound by interconnect (ms: compute 1.0, memory 1.0, interconnect 3.0)" in text
    assert "by XLA's estimate" in text and "for 100 billion tokens" in text
    found = json.loads(json.dumps(report.to_json(plan)))
    assert found["fits"] and found["memory"]["peak"] == 3 * GIB
    assert found["seconds"]["bound"] == pytest.approx(3e-3)
    assert found["collectives"][0]["bytes"] == 18e7
    assert found["dollars_per_100_billion_tokens"]["at_least"] == pytest.approx(
        100e9 / (16 * 16) * 3e-3 * 4 * 1.5 / 3600
    )


def test_without_libtpu_nothing_is_said_of_the_program(pieces):
    plan = report.make(pieces, PLACE, None, price=None)
    text = "\n".join(report.text(plan))
    assert plan.fits and "it fits, by the estimate" in text and "estimate: kept for the backward pass" in text
    assert "XLA" not in text and "intensity" not in text and "$" not in text
    assert not report.to_json(plan)["compiled"]


def test_a_run_that_does_not_fit_says_what_does(pieces):
    overflow = Overflow(required=30 * GIB, available=PLACE.chip.hbm, seconds=1.0)
    experiment = pieces.experiment
    tried = [
        search.Tried(search.Variant(experiment, (("train.remat", "dots"),), 1.05), pieces, overflow),
        search.Tried(search.Variant(experiment, (("train.micro_batches", 2),), 1.03), pieces, step()),
    ]
    plan = dataclasses.replace(report.make(pieces, PLACE, overflow, price=None), tried=tried)
    text = "\n".join(report.text(plan))
    assert not plan.fits and "IT DOES NOT FIT: a chip needs" in text
    assert "--train.micro-batches 2" in text and "tried and too large: --train.remat dots" in text
    assert report.to_json(plan)["tried"][1] == {"changes": {"train.micro_batches": 2}, "fits": True, "slowdown": 1.03}
    text = "\n".join(report.text(dataclasses.replace(plan, tried=tried[:1])))
    assert "no change that was tried fits" in text


@pytest.mark.slow
def test_planning_needs_neither_tensorflow_nor_torch():
    code = "import t2t.commands.plan, t2t.planning.report, t2t.planning.search"
    assert not loaded_by(code) & (TENSORFLOW | TORCH)
