import doctest
import random
import sys

import pytest

from t2t.train import text_metrics


def test_accuracy_ignores_spaces_at_the_ends_only():
    assert text_metrics.accuracy(["a", "b", "c d", "D"], [" a ", "b\n", "c  d", "d"]) == {"accuracy": 50.0}


def test_accuracy_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = random.Random(0)
    targets, predictions = (draw.choices(["module", "class", "function"], k=101) for _ in range(2))
    expected = 100 * metrics.accuracy_score(targets, predictions)
    assert 0 < expected < 100
    assert text_metrics.accuracy(targets, predictions) == {"accuracy": pytest.approx(expected)}


def test_f1_of_words_that_occur_once_is_scikit_learns():
    """Each word of the vocabulary as a yes or no: as SQuAD's F1, but for words that are repeated."""
    metrics = pytest.importorskip("sklearn.metrics")
    draw, words = random.Random(1), [f"word{i}" for i in range(9)]
    for _ in range(20):
        target, prediction = (draw.sample(words, draw.randint(1, 9)) for _ in range(2))
        expected = metrics.f1_score(*([word in text for word in words] for text in (target, prediction)))
        assert text_metrics.token_f1(" ".join(target), " ".join(prediction)) == pytest.approx(expected)


def test_exact_match_takes_any_of_several_targets():
    targets = [["blue", "azure"], ["red"], "green"]
    assert text_metrics.exact_match(targets, ["azure", "blue", " green"])["exact_match"] == pytest.approx(200 / 3)


def test_squad_normalises_and_takes_the_best_target():
    targets = [["the Beatles", "Fab Four"], "in 1999."]
    assert text_metrics.squad(targets, ["Fab four!", "1999"]) == {
        "exact_match": 50.0,
        "f1": pytest.approx((1 + 2 * (1 / 1) * (1 / 2) / (1 / 1 + 1 / 2)) / 2 * 100),
    }


def test_f1_of_nothing_in_common_is_zero():
    assert text_metrics.token_f1("a", "a") == 0.0  # articles are no words
    assert text_metrics.token_f1("cat", "") == 0.0
    assert text_metrics.token_f1("cat cat dog", "cat cat cat") == pytest.approx(2 / 3)


def test_bleu_is_sacrebleus():
    sacrebleu = pytest.importorskip("sacrebleu")
    predictions = ["The cat sat on the mat.", "There is no dog here at all."]
    targets = [["The cat sat on the mat .", "A cat sat."], ["There is a dog here today.", "No dog is here."]]
    expected = sacrebleu.corpus_bleu(
        predictions, [[t[0] for t in targets], [t[1] for t in targets]], tokenize="intl", smooth_method="exp"
    )
    assert text_metrics.bleu(targets, predictions) == {"bleu": pytest.approx(expected.score)}
    single = [references[0] for references in targets]
    assert text_metrics.bleu(single, single)["bleu"] == pytest.approx(100.0)
    with pytest.raises(ValueError, match="same number of references"):
        text_metrics.bleu([["a", "b"], ["a"]], ["a", "a"])


def test_rouge_by_hand():
    pytest.importorskip("rouge_score")
    # "the red cat" against "the cat sat": 2 of 3 words; 0 of 2 pairs; longest common sequence 2 of 3.
    scores = text_metrics.rouge(["the cat sat"], ["the red cat"])
    assert scores == {"rouge1": pytest.approx(200 / 3), "rouge2": 0.0, "rougeLsum": pytest.approx(200 / 3)}
    scores = text_metrics.rouge([["a dog", "the cat sat"], "same words"], ["the red cat", "same words"])
    assert scores["rouge1"] == pytest.approx((200 / 3 + 100) / 2)


def test_rouge_lsum_reads_sentences_in_any_order():
    pytest.importorskip("rouge_score")
    swapped = text_metrics.rouge(["rain fell . sun rose ."], ["sun rose . rain fell ."])
    assert swapped["rougeLsum"] == pytest.approx(100.0)


@pytest.mark.parametrize("metric", [text_metrics.accuracy, text_metrics.squad, text_metrics.bleu, text_metrics.rouge])
def test_unequal_numbers_are_refused(metric):
    with pytest.raises(ValueError, match="2 targets and 1 predictions"):
        metric(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="not 0"):
        metric([], [])


@pytest.mark.parametrize(
    ("metric", "library"), [(text_metrics.bleu, "sacrebleu"), (text_metrics.rouge, "rouge_score.rouge_scorer")]
)
def test_missing_libraries_say_how_to_get_them(metric, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install 't2t\[metrics\]'"):
        metric(["a"], ["a"])


def test_doctest_examples_hold():
    assert doctest.testmod(text_metrics).failed == 0
