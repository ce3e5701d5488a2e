import pytest

from t2t.train import answer_metrics, text_metrics


def test_trivia_qa_as_the_reference_implementation_tests_it():
    targets = [["big moose", "hippo"], ["correct1"], ["correct2.1", "correct2.2"], ["a", "b"]]
    predictions = ["‘a big  Moose!‘", "wrong", "correct2.2", "c"]
    assert answer_metrics.trivia_qa(targets, predictions) == {"exact_match": 50.0, "f1": 50.0}
    squad = text_metrics.squad(targets, predictions)
    assert squad == {"exact_match": 25.0, "f1": pytest.approx(35.0)}  # whose signs vanish, and which knows no ‘


def test_squad_v2_by_hand():
    """Found 1 and 2/3; no answer: said so, nothing said, and a guess; a guess that an answer is missing."""
    targets = [["in Rome"], ["Rome"], [], [], [], ["Paris"]]
    predictions = ["Rome", "the Rome", "Unanswerable.", "", "Rome", "unanswerable"]
    made = answer_metrics.squad_v2(targets, predictions)
    assert made["has_answer_exact_match"] == pytest.approx(100 / 3)
    assert made["has_answer_f1"] == pytest.approx(100 * (2 / 3 + 1 + 0) / 3)
    assert made["no_answer_exact_match"] == made["no_answer_f1"] == pytest.approx(200 / 3)
    assert made["exact_match"] == 50.0
    assert made["f1"] == pytest.approx(100 * (2 / 3 + 1 + 1 + 1) / 6)


def test_chrf_is_sacrebleus():
    sacrebleu = pytest.importorskip("sacrebleu")
    targets, predictions = ["Das ist gut.", "Ja!"], ["Das ist nicht gut.", "Ja!"]
    expected = sacrebleu.corpus_chrf(predictions, [targets]).score
    assert 0 < expected < 100
    assert answer_metrics.chrf(targets, predictions) == {"chrf": pytest.approx(expected)}
    both = answer_metrics.translation(targets, targets)
    assert both == {"bleu": pytest.approx(100.0), "chrf": pytest.approx(100.0)}
    with pytest.raises(ValueError, match="same number of references"):
        answer_metrics.chrf([["a", "b"], ["a"]], ["a", "a"])
