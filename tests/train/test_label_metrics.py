"""Worked examples: those of the reference implementation's tests, and numbers computed on paper."""

import pytest

from t2t.train import label_metrics

pytest.importorskip("sklearn")
pytest.importorskip("scipy")


def test_published_examples():
    assert label_metrics.label_accuracy([0, 0, 2, 1], [0, 1, 2, 1]) == {"accuracy": 75.0}
    assert label_metrics.binary_f1([0, 1, 1, 0], [0, 1, 2, 2]) == {"f1": pytest.approx(50.0)}
    assert label_metrics.macro_f1(3)([0, 1, 1, 2], [0, 0, 2, 2]) == {"f1": pytest.approx(400 / 9)}
    assert label_metrics.matthews([0, 0, 2, 1], [0, 1, 2, 1])["matthews"] == pytest.approx(70.0)
    assert label_metrics.correlations([0, 2], [0, 1])["pearson"] == pytest.approx(100.0)
    assert label_metrics.correlations([0, 2, 1], [0, 1, 2])["spearman"] == pytest.approx(50.0)


def test_what_is_no_label_is_wrong_in_every_metric():
    """True, false positives and negatives by hand: (1, 1) right, (1, -1) a false negative, (0, -1) a false positive."""
    right, ours = [1, 1, 0, 0], [1, -1, -1, 0]
    assert label_metrics.label_accuracy(right, ours) == {"accuracy": 50.0}
    assert label_metrics.binary_f1(right, ours) == {"f1": pytest.approx(100 * 2 / (2 + 1 + 1))}
    assert label_metrics.invalid_labels(right, ours) == {"invalid_predictions": 2.0}


def test_unknown_targets_are_left_out():
    for metric in (label_metrics.label_accuracy, label_metrics.binary_f1, label_metrics.matthews,
                   label_metrics.macro_f1(2), label_metrics.correlations):  # fmt: skip
        assert metric([-1, -1], [0, 1]) == {}
    assert label_metrics.label_accuracy([-1, 1], [0, 1]) == {"accuracy": 100.0}
    grouped = [{"value": -1, "group": (1,)}, {"value": -1, "group": (1,)}]
    assert label_metrics.multirc(grouped, grouped) == {"invalid_predictions": 2.0}


def test_matthews_by_its_formula():
    """tp 3, tn 2, fp 1, fn 2: (3*2 - 1*2) / sqrt((3+1)(3+2)(2+1)(2+2))."""
    right = [1, 1, 1, 1, 1, 0, 0, 0]
    ours = [1, 1, 1, 0, 0, 0, 0, 1]
    assert label_metrics.matthews(right, ours)["matthews"] == pytest.approx(100 * 4 / 240**0.5)
    assert label_metrics.matthews([1, 1], [1, 1]) == {"matthews": 0.0}


def test_correlations_by_hand():
    """Deviations (-1, 0, 1) and (-1, 1, 0): 1 / 2. Ranks with a tie: scipy's mean ranks."""
    made = label_metrics.correlations([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert made == {"pearson": pytest.approx(50.0), "spearman": pytest.approx(50.0)}
    assert label_metrics.correlations([1.0, 2.0], [3.0, 3.0]) == {"pearson": 0.0, "spearman": 0.0}
    # -1, what is no number, takes part as T5 has it.
    assert label_metrics.correlations([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0])["pearson"] < 100


def test_multirc_by_hand():
    """Question 1 has both answers right, question 2 one of two; of answers 2 true positives, 1 false positive."""
    targets = [{"value": v, "group": g} for v, g in ((1, 1), (0, 1), (1, 2), (0, 2))]
    predictions = [{"value": v} for v in (1, 0, 1, 1)]
    made = label_metrics.multirc(targets, predictions)
    assert made == {"f1": pytest.approx(80.0), "exact_match": 50.0, "invalid_predictions": 0.0}
    published = label_metrics.multirc(
        [{"group": "a", "value": 1}, {"group": "a", "value": 1}, {"group": "b", "value": 0}],
        [{"value": 1}, {"value": 0}, {"value": 1}],
    )
    assert published["f1"] == pytest.approx(50.0)


def test_record_counts_a_query_once():
    targets = [
        {"value": ["New York", "NYC"], "group": (0, 1)},
        {"value": ["New York", "NYC"], "group": (0, 1)},
        {"value": ["Rome"], "group": (0, 2)},
        {"value": [], "group": (0, 3)},
    ]
    predictions = [{"value": text} for text in ("the nyc", "wrong", "in Rome", "any")]
    assert label_metrics.record(targets, predictions) == {
        "exact_match": 50.0,
        "f1": pytest.approx(100 * (1 + 2 / 3) / 2),
    }
    assert label_metrics.record(targets[3:], predictions[3:]) == {}


def test_gender_parity_compares_pairs():
    targets = [{"value": v, "group": g} for v, g in ((0, 0), (0, 0), (1, 1), (1, 1), (0, 2))]
    predictions = [{"value": v} for v in (0, 0, 1, 0, 0)]
    assert label_metrics.gender_parity(targets, predictions) == {
        "accuracy": 80.0,
        "gender_parity": 50.0,
        "invalid_predictions": 0.0,
    }
