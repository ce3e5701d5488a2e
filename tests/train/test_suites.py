import pytest

from t2t.train import suites

# The scores of the first row of T5's table 14, and what the leaderboard makes of them by hand.
T5_SMALL = {
    "glue_cola": {"matthews": 41.0},
    "glue_sst2": {"accuracy": 91.8},
    "glue_mrpc": {"f1": 89.7, "accuracy": 86.6},
    "glue_stsb": {"pearson": 85.6, "spearman": 85.0},
    "glue_qqp": {"f1": 70.0, "accuracy": 88.0},
    "glue_mnli": {"accuracy": 82.4},
    "glue_mnli_mismatched": {"accuracy": 82.3},
    "glue_qnli": {"accuracy": 90.3},
    "glue_rte": {"accuracy": 69.9},
    "glue_wnli": {"accuracy": 69.2},
}


def test_glues_average_as_the_t5_paper_prints_it():
    """Table 14 gives T5-small 77.4."""
    made = suites.averages(T5_SMALL)
    by_hand = (41.0 + 91.8 + 88.15 + 85.3 + 79.0 + 82.35 + 90.3 + 69.9 + 69.2) / 9
    assert made["glue"]["average"] == pytest.approx(by_hand)
    assert round(made["glue"]["average"], 1) == 77.4
    without = (by_hand * 9 - 69.2) / 8
    assert made["glue_without_wnli"]["average"] == pytest.approx(without)


def test_one_domain_of_mnli_is_enough():
    matched = {task: values for task, values in T5_SMALL.items() if task != "glue_mnli_mismatched"}
    more = suites.averages(matched)["glue"]["average"]
    assert more == pytest.approx(suites.averages(T5_SMALL)["glue"]["average"] + 0.05 / 9)


def test_nothing_is_said_of_a_part():
    assert suites.averages({"glue_cola": {"matthews": 1.0}}) == {}
    unlabelled = T5_SMALL | {"glue_rte": {"loss": 1.0}}
    assert suites.averages(unlabelled) == {}
    assert suites.averages(T5_SMALL | {"glue_rte": {"accuracy": None}}) == {}
    assert suites.complete(T5_SMALL) == ("glue", "glue_without_wnli")


def test_super_glues_average_as_its_leaderboard_prints_it():
    """T5's row, 89.3."""
    scores = {
        "boolq": {"accuracy": 91.2}, "cb": {"f1": 93.9, "accuracy": 96.8}, "copa": {"accuracy": 94.8},
        "multirc": {"f1": 88.1, "exact_match": 63.3}, "record": {"f1": 94.1, "exact_match": 93.4},
        "rte": {"accuracy": 92.5}, "wic": {"accuracy": 76.9}, "wsc": {"accuracy": 93.8},
    }  # fmt: skip
    made = suites.averages({f"super_glue_{name}": values for name, values in scores.items()})
    assert made["super_glue"]["average"] == pytest.approx(714.0 / 8)
    assert made["super_glue"]["average"] == pytest.approx(89.3, abs=0.0501)
