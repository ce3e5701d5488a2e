import collections
import math
import types

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from t2t.data import mixing
from t2t.data.mixing import ExampleCount, Order, by_exponent, share_out, whole_weights


def order(sizes, rates, seed=5):
    return Order(sizes=sizes, rates=rates, seeds=tuple(range(10, 10 + len(sizes))), seed=seed)


def test_every_epoch_reads_each_example_once_in_another_order():
    one = order((7,), (1.0,))
    epochs = [[one.locate(7 * epoch + place) for place in range(7)] for epoch in range(3)]
    assert all(sorted(draw.index for draw in epoch) == list(range(7)) for epoch in epochs)
    assert [epoch[0].epoch for epoch in epochs] == [0, 1, 2]
    assert len({tuple(draw.index for draw in epoch) for epoch in epochs}) == 3


def test_order_depends_on_the_seed_alone():
    def read(seed):
        mixture = Order(sizes=(50, 60), rates=(1.0, 2.0), seeds=(seed, seed + 1), seed=seed)
        return [mixture.locate(position) for position in range(300)]

    assert read(1) == read(1)
    assert read(1) != read(2)


def test_the_order_of_ten_examples_is_what_it_was():
    """Resuming with another version of t2t must not change the order."""
    assert mixing.permutation(10, 3, 0).tolist() == [4, 1, 6, 2, 9, 7, 3, 8, 0, 5]
    assert mixing.derive_seed(3, "task", "a") == 4576505289109166478


def test_all_orders_of_three_examples_are_equally_frequent():
    found = collections.Counter(tuple(mixing.permutation(3, 1, epoch).tolist()) for epoch in range(1200))
    assert len(found) == 6
    assert all(abs(count - 200) < 4 * (200 * 5 / 6) ** 0.5 for count in found.values())


@hypothesis.given(st.lists(st.integers(1, 50), min_size=1, max_size=9), st.integers(0, 500))
def test_shares_are_exact_after_any_number_of_positions(weights, number):
    sums = tuple(np.cumsum([0, *weights]).tolist())
    found = collections.defaultdict(list)
    for position in range(number):
        stream, place = share_out(sums, position)
        found[stream].append(place)
    for stream, weight in enumerate(weights):
        assert found[stream] == list(range(len(found[stream])))
        halvings = max(1, len(weights).bit_length())
        assert abs(len(found[stream]) - number * weight / sum(weights)) <= halvings


def test_a_mixture_keeps_its_rates_exactly_and_reads_every_example():
    mixture = order((30, 40, 20), (0.5, 0.3, 0.2))
    number = 2 * mixing.WINDOW
    draws = [mixture.locate(position) for position in range(number)]
    counts = collections.Counter(draw.task for draw in draws)
    assert all(abs(counts[task] - number * mixture.rates[task]) <= 2 for task in range(3))
    for task, size in enumerate(mixture.sizes):
        read = collections.Counter((draw.epoch, draw.index) for draw in draws if draw.task == task)
        assert set(read.values()) == {1}
        assert {index for epoch, index in read if epoch == 0} == set(range(size))


@pytest.mark.parametrize("rows", [2, 4, 8])
def test_no_lane_meets_one_task_only(rows):
    """Else a lane of long examples would get more than its share of a packed batch."""
    mixture = order((30, 40), (1.0, 1.0))
    for lane in range(rows):
        tasks = [mixture.locate(position).task for position in range(lane, 400 * rows, rows)]
        assert 140 < sum(tasks) < 260


def test_whole_weights():
    assert whole_weights([1, 1, 1]) == (1, 1, 1)
    assert whole_weights([0.25, 2.5]) == (1, 10)
    weights = whole_weights([0.3, 0.7])
    assert weights[0] / sum(weights) == pytest.approx(0.3, abs=1e-15)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (ExampleCount(), 8000),
        (ExampleCount(maximum=1000), 1000),
        (ExampleCount(scale=0.5), 4000),
        (ExampleCount(scale=0.5, maximum=5000), 4000),
        (ExampleCount(temperature=3.0), 20),
        (ExampleCount(scale=0.5, maximum=1000, temperature=3.0), 10),
        (by_exponent(1 / 3), 20),
        (by_exponent(1.0), 8000),
        (by_exponent(0.0), 1),
    ],
)
def test_rates_scale_then_cap_then_soften(rate, expected):
    task = types.SimpleNamespace(name="books", num_input_examples=lambda split: {"train": 8000}[split])
    assert rate(task) == pytest.approx(expected, rel=1e-12)


def test_rates_need_a_number_of_examples():
    task = types.SimpleNamespace(name="books", num_input_examples=lambda split: None)
    with pytest.raises(ValueError, match="'books' does not know its number of examples"):
        ExampleCount()(task)
    with pytest.raises(ValueError, match="positive"):
        ExampleCount(temperature=0)
    with pytest.raises(ValueError, match="positive"):
        ExampleCount(temperature=math.nan)
    task = types.SimpleNamespace(name="books", num_input_examples=lambda split: 1000)
    with pytest.raises(ValueError, match="temperature=1e-05 makes the rate of task 'books' larger"):
        ExampleCount(temperature=1e-5)(task)
    with pytest.raises(ValueError, match="exponent=-1 must be at least 0"):
        by_exponent(-1)


def test_languages_as_multilingual_bert_samples_them():
    """A thousand times as much text is drawn a hundred times as often (S = 0.7)."""
    large, small = (types.SimpleNamespace(num_input_examples=lambda split, n=n: n) for n in (10**6, 10**3))
    assert by_exponent(0.7)(large) / by_exponent(0.7)(small) == pytest.approx(125.9, abs=0.05)


def test_orders_are_checked():
    with pytest.raises(ValueError, match="at least one example"):
        order((3, 0), (1.0, 1.0))
    with pytest.raises(ValueError, match="positive and finite"):
        order((3, 4), (1.0, 0.0))
    with pytest.raises(ValueError, match="one each"):
        order((3, 4), (1.0,))


def test_few_examples_need_little_memory_and_large_epochs_are_not_kept():
    small, large = order((2,), (1.0,)), order((2**18,), (1.0,))
    for epoch in range(40):
        small.locate(2 * epoch)
    for epoch in range(6):
        large.locate(2**18 * epoch)
    assert small._permutations[0].cache_info().currsize == 40
    assert large._permutations[0].cache_info().currsize == 4


def test_rate_table():
    table = mixing.rate_table({"a": 1.0, "bc": 3.0}, {"a": 10, "bc": 2000})
    assert table.splitlines()[2].split() == ["bc", "2,000", "3", "75.00%"]
