"""Metrics as people read them: what is of tokens and what of texts, though both be called accuracy."""

import math

import pytest

from t2t.commands import metrics

OF_TOKENS = {"loss": 2.0, "cross_entropy": 2.0, "accuracy": 0.25, "perplexity": 7.4, "examples": 8.0}


def shown(values, *, baseline=None, has_texts=False) -> dict[str, float]:
    return {name: value for _, name, value in metrics.shown(values, baseline=baseline or {}, has_texts=has_texts)}


def test_shares_of_tokens_are_in_per_cent():
    expected = {"loss": 2.0, "cross_entropy": 2.0, "token accuracy (%)": 25.0, "perplexity": 7.4}
    assert shown(OF_TOKENS) == expected


@pytest.mark.parametrize(
    ("changed", "options", "expected"),
    [
        ({"accuracy": 16.0}, {"has_texts": True}, {"accuracy (%)": 16.0}),
        ({"accuracy": 0.5}, {"has_texts": True}, {"accuracy (%)": 0.5}),  # of the only metric of the task
        ({"accuracy": 0.5}, {"has_texts": True, "baseline": {"accuracy": 9.0}}, {"accuracy (%)": 0.5}),
        ({"rouge1": 30.0}, {"has_texts": True}, {"token accuracy (%)": 25.0, "rouge1 (%)": 30.0}),
        ({"accuracy": 16.0, "meteor": 3.0}, {"has_texts": True}, {"accuracy (%)": 16.0, "meteor": 3.0}),
    ],
)
def test_metrics_of_texts_keep_their_values(changed, options, expected):
    found = shown(OF_TOKENS | changed, **options)
    assert {name: found.get(name) for name in expected} == expected
    assert len([name for name in found if "accuracy" in name]) == 1


def test_what_is_not_finite_is_nan():
    assert math.isnan(shown({"accuracy": None, "examples": 8.0})["token accuracy (%)"])
