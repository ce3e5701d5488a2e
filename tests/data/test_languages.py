import collections

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import languages, mixing, pipeline, registry  # noqa: E402
from t2t.data.features import DecoderFeatures  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

COUNTS = {"en": 64, "sw": 8, "zh-Latn": 1}


@pytest.fixture(scope="module")
def mixtures():
    sources = {
        language: registry.TextSource(lambda split, n=count: [{"body": "abcdefg"}] * n, splits=("train",))
        for language, count in COUNTS.items()
    }
    before = {*seqio.TaskRegistry.names()}
    names = languages.add_languages("spoken", sources, exponent=0.5, field="body")
    yield names
    for name in {*seqio.TaskRegistry.names()} - before:
        seqio.TaskRegistry.remove(name)
    for name in names:
        seqio.MixtureRegistry.remove(name)


def test_every_objective_of_every_language_and_of_all(mixtures):
    objectives = ("span_corruption", "mlm", "causal_lm", "prefix_lm")
    assert mixtures == tuple(f"spoken_{objective}" for objective in objectives)
    for objective in objectives:
        parts = [task.name for task in seqio.MixtureRegistry.get(f"spoken_{objective}").tasks]
        assert parts == [f"spoken_{language}_{objective}" for language in ("en", "sw", "zh_Latn")]


def test_languages_are_drawn_by_the_exponent(mixtures, caplog):
    """In proportion to 8, 2.83 and 1, of documents that are an example each: seven bytes and EOS."""
    converter = DecoderFeatures(lengths={"targets": 8}, start_id=0)
    with caplog.at_level("INFO"):
        stream = pipeline.load_stream("spoken_causal_lm", vocabulary=ByteVocabulary(), converter=converter, seed=0)
    assert [len(task) for task in stream.tasks] == [64, 8, 1]
    assert "spoken_sw_causal_lm" in caplog.text
    drawn = collections.Counter(stream.order.locate(position).task for position in range(mixing.WINDOW))
    weights = [count**0.5 for count in COUNTS.values()]
    for task, weight in enumerate(weights):
        assert abs(drawn[task] - mixing.WINDOW * weight / sum(weights)) < 3


def test_what_cannot_be_mixed_is_refused():
    with pytest.raises(ValueError, match="exponent=-0.3 must be at least 0"):
        source = registry.TextSource(lambda split: [], splits=("train",))
        languages.add_languages("spoken", {"en": source}, exponent=-0.3)
    with pytest.raises(ValueError, match="spoken: there must be at least one language"):
        languages.add_languages("spoken", {}, exponent=0.3)
