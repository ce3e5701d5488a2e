"""The search with a compiler that answers by a rule, so that its order can be seen."""

import dataclasses

import pytest
from planning import runs

from t2t.planning import analytic, compiled, search, topology
from t2t.planning.compiled import Overflow, Step
from t2t.planning.work import Work

PLACE = topology.parse("v5e:2x2")
NO_WORK = Work(matrix_operations=1.0, looped_operations=0.0, bytes=1.0, cycles=0.0, kernels=0)


def fitting(peak=1):
    return Step(peak=peak, arguments=0, program=0, xla_operations=0, work=NO_WORK, exchanges=[], seconds=0.0)


def too_large(pieces, factor=1.0):
    held, kept = analytic.held(pieces), analytic.kept(pieces).on_chip(pieces.experiment, pieces.mesh.shape)
    return Overflow(required=int(factor * (held.gradients + kept)), available=PLACE.chip.hbm, seconds=0.0)


@pytest.fixture(scope="module")
def pieces():
    return compiled.pieces_of(runs.experiment("decoder", data={"batch_size": 64}), PLACE.stand_ins())


def searched(pieces, answer, capacity, *, wanted=2, tries=8, first=None):
    place = dataclasses.replace(PLACE, chip=dataclasses.replace(PLACE.chip, hbm=int(capacity)))
    seen = []

    def compile_variant(variant, pieces):
        seen.append(variant.flags)
        return answer(pieces)

    found = search.search(
        pieces.experiment,
        place,
        too_large(pieces) if first is None else first,
        wanted=wanted,
        tries=tries,
        compile_variant=compile_variant,
        devices=PLACE.stand_ins(),
    )
    return list(found), seen


def test_one_setting_before_two_and_the_cheapest_first(pieces):
    found = search.variants(pieces.experiment, PLACE)
    assert [variant.flags for variant in found[:3]] == [
        "--train.micro-batches 2",
        "--train.remat dots",
        "--mesh.fsdp 2",
    ]
    settings = [len({"mesh" if "mesh" in name else name for name, _ in variant.changes}) for variant in found]
    assert settings == sorted(settings)
    assert all(variant.experiment != pieces.experiment for variant in found)
    halved = next(variant for variant in found if variant.flags == "--data.batch-size 32")
    assert halved.experiment.data.batch_size == 32


def test_it_ends_when_enough_fit_in_different_ways(pieces):
    found, seen = searched(pieces, lambda _: fitting(), PLACE.chip.hbm)
    assert len(found) == 2 and all(one.fits for one in found)
    assert seen == ["--train.micro-batches 2", "--train.remat dots"]


@pytest.mark.slow
def test_what_the_estimate_rules_out_is_not_compiled(pieces):
    """With room for less than half of what the run keeps, two micro-batches are not tried, four are."""
    held, needed = analytic.held(pieces), too_large(pieces).required
    _, seen = searched(pieces, lambda _: fitting(), (held.arguments + needed * 0.4) / search.MARGIN, wanted=1)
    assert seen[0] == "--train.micro-batches 4"


def test_an_answer_corrects_the_estimate(pieces):
    """What needs three times the estimate is known from then on, and what is near the limit is left out."""
    estimate = search.Estimator(devices=PLACE.stand_ins())
    hopeful = estimate(pieces.experiment)
    estimate.learn(pieces.experiment, too_large(pieces, factor=3.0))
    assert estimate.correction == pytest.approx(3.0, rel=1e-3)
    assert estimate(pieces.experiment) > 2 * hopeful
    estimate.learn(pieces.experiment, fitting())
    assert estimate.correction == pytest.approx(3.0, rel=1e-3)


@pytest.mark.slow
def test_no_more_tries_than_asked_for(pieces):
    found, seen = searched(pieces, lambda tried: too_large(tried, 0.1), PLACE.chip.hbm, tries=3)
    assert len(found) == len(seen) == 3 and not any(one.fits for one in found)


def test_sizes_that_do_not_go_together_are_passed_over(pieces):
    estimate = search.Estimator(devices=PLACE.stand_ins())
    odd = dataclasses.replace(pieces.experiment, data=dataclasses.replace(pieces.experiment.data, batch_size=6))
    assert estimate(odd) is None


def test_what_fits_is_not_searched(pieces):
    with pytest.raises(ValueError, match="the run fits"):
        searched(pieces, lambda _: fitting(), 1, first=fitting())
