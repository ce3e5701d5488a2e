"""The search with a compiler that answers by a rule, so that its order can be seen."""

import dataclasses

import pytest

from planning import runs
from t2t.planning import analytic, compiled, search, topology
from t2t.planning.compiled import Overflow, Step
from t2t.planning.search import Tried, Variant
from t2t.planning.work import Work

PLACE = topology.parse("v5e:2x2")
NO_WORK = Work(matrix_operations=1.0, looped_operations=0.0, bytes=1.0, cycles=0.0, kernels=0)


def fitting(peak=1):
    return Step(peak=peak, arguments=0, program=0, xla_operations=0, work=NO_WORK, exchanges=[], seconds=0.0)


def too_large(pieces, factor=1.0):
    held = analytic.held(pieces)
    needed = factor * (held.gradients + analytic.kept(pieces).on_chip(pieces))
    return Overflow(required=int(needed), available=PLACE.chip.hbm, seconds=0.0)


@pytest.fixture(scope="module")
def first():
    experiment = runs.experiment("decoder", data={"batch_size": 64})
    pieces = compiled.pieces_of(experiment, PLACE.stand_ins())
    return Tried(Variant(experiment, (), 1.0), pieces, too_large(pieces))


def searched(first, answer, capacity, *, wanted=2, tries=8):
    place = dataclasses.replace(PLACE, chip=dataclasses.replace(PLACE.chip, hbm=capacity))
    seen = []

    def compile_variant(variant, pieces):
        seen.append(variant.flags)
        return answer(variant, pieces)

    found = search.search(
        first.variant.experiment,
        place,
        first,
        wanted=wanted,
        tries=tries,
        compile_variant=compile_variant,
        devices=PLACE.stand_ins(),
    )
    return list(found), seen


def test_one_setting_before_two_and_the_cheapest_first(first):
    found = search.variants(first.variant.experiment, PLACE)
    assert [variant.flags for variant in found[:3]] == [
        "--train.micro_batches 2",
        "--train.remat dots",
        "--mesh.fsdp 2",
    ]
    settings = [len({name.split(".")[0] + name[-5:] for name, _ in variant.changes}) for variant in found]
    assert settings == sorted(settings)
    assert all(variant.experiment != first.variant.experiment for variant in found)
    halved = next(variant for variant in found if variant.flags == "--data.batch_size 32")
    assert halved.experiment.data.batch_size == 32


def test_it_ends_when_enough_fit_in_different_ways(first):
    found, seen = searched(first, lambda variant, pieces: fitting(), PLACE.chip.hbm)
    assert len(found) == 2 and all(one.fits for one in found)
    assert seen == ["--train.micro_batches 2", "--train.remat dots"]


def test_what_the_estimate_rules_out_is_not_compiled(first):
    """With room for a quarter of the rows' activations, half of them are not tried."""
    known = analytic.held(first.pieces)
    capacity = known.arguments + int((known.gradients + analytic.kept(first.pieces).on_chip(first.pieces)) / 3.5)
    _, seen = searched(first, lambda variant, pieces: fitting(), capacity, wanted=1)
    assert seen[0] != "--train.micro_batches 2"


def test_an_answer_corrects_the_estimate(first):
    """The compiler needs three times what was estimated: after one such answer variants near the limit are left out."""
    capacity = int(1.2 * (analytic.held(first.pieces).arguments + first.outcome.required / 2))
    answers = []

    def answer(variant, pieces):
        answers.append(variant.flags)
        return too_large(pieces, factor=3.0)

    searched(first, answer, capacity, tries=50)
    estimator = search.Estimator(capacity=capacity)
    for _ in range(2):
        estimator.learn(first.pieces, too_large(first.pieces, factor=3.0))
    assert estimator.correction == pytest.approx(3.0, rel=1e-3)
    assert "--train.micro_batches 2" in answers


def test_no_more_tries_than_asked_for(first):
    found, seen = searched(first, lambda variant, pieces: too_large(pieces, 0.1), PLACE.chip.hbm, tries=3)
    assert len(found) == len(seen) == 3 and not any(one.fits for one in found)


def test_what_fits_is_not_searched(first):
    with pytest.raises(ValueError, match="the run fits"):
        searched(dataclasses.replace(first, outcome=fitting()), lambda *_: fitting(), 1)
