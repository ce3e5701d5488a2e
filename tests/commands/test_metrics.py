"""Metrics as people read them: what is of tokens and what of texts, though both be called accuracy."""

import math

from t2t.commands import metrics

OF_TOKENS = {"loss": 2.0, "cross_entropy": 2.0, "accuracy": 0.25, "perplexity": 7.4, "examples": 8.0}


def shown(values, *of_texts: str) -> dict[str, float]:
    return {name: value for _, name, value in metrics.present(values, of_texts=of_texts)}


def test_shares_of_tokens_are_in_per_cent():
    expected = {"loss": 2.0, "cross_entropy": 2.0, "token accuracy (%)": 25.0, "perplexity": 7.4}
    assert shown(OF_TOKENS) == expected


def test_metrics_of_texts_keep_their_values():
    found = shown(OF_TOKENS | {"accuracy": 0.5, "rouge1": 30.0, "meteor": 3.0}, "accuracy", "rouge1", "meteor")
    assert found["accuracy (%)"] == 0.5 and found["rouge1 (%)"] == 30.0 and found["meteor"] == 3.0
    assert "token accuracy (%)" not in found


def test_what_is_not_finite_is_nan():
    assert math.isnan(shown({"accuracy": None, "examples": 8.0})["token accuracy (%)"])
