"""Numbers of rows against counting by hand, and the shares that objectives are known for."""

import numpy as np
import pytest
from data import toy
from data.test_views import BOS, EOS, MASK, PAD, S0, S1, SPECIAL, ids

from t2t.data import corruption, features, readers, row_statistics, vocabularies
from t2t.data.denoisers import CausalLM, PrefixLM, SpanCorruption
from t2t.data.masked_objectives import EXACT, REPLACED_TOKENS, SPANS
from t2t.data.permutation_lm import PermutationLM
from t2t.data.t5_grid import t5_objective
from t2t.data.views import Mark


def test_two_rows_by_hand():
    converter = features.EncoderFeatures(lengths={"inputs": 6, "targets": 6}, pad_id=PAD)
    a = {"inputs": ids(BOS, MASK, 9, EOS), "targets": ids(BOS, 5, 6, EOS), "weights": ids(0, 1, 1, 0)}
    b = {"inputs": ids(7), "targets": ids(7), "weights": ids(1)}
    c = {"inputs": ids(5, 6, 7), "targets": ids(5, 6, 7), "weights": ids(0, 0, 0)}
    numbers = row_statistics.count([converter.convert([[a, b]]), converter.convert([[c]])], SPECIAL)
    assert (numbers.rows, numbers.examples) == (2, 3)
    (side,) = numbers.sides.values()
    assert (side.positions, side.tokens, side.with_loss) == (12, 8, 3)
    assert side.lengths == [4, 1, 3]
    assert side.marks == {Mark.TEXT: 3, Mark.SPECIAL: 2, Mark.MASKED: 1, Mark.REPLACED: 1, Mark.KEPT: 1}
    assert numbers.chosen == 3 / 6
    assert side.padding == 4 / 12 and side.loss_share == 3 / 8
    assert numbers.to_json()["sides"]["encoder"]["lengths"] == {"least": 1, "median": 3, "mean": 8 / 3, "greatest": 4}


@pytest.mark.parametrize(
    ("inputs", "targets", "chosen"),
    [
        ((5, S0, 7, EOS), (S0, 6, 8, S1, EOS), 2 / 4),  # what sentinels stand for
        ((5, MASK, 9, 8, EOS), (5, 6, 7, 8, EOS), 2 / 4),  # the text is predicted
        ((5, MASK, 8, EOS), (5, 6, 7, 8, EOS), 2 / 4),  # one mask for a span
        ((5, S0, 9, 8, EOS), (6, EOS), 1 / 4),  # only the noise is predicted
        ((5, 6, EOS), (9, EOS), None),  # nothing is chosen
    ],
)
def test_what_a_decoder_has_to_say(inputs, targets, chosen):
    converter = features.EncoderDecoderFeatures(lengths={"inputs": 6, "targets": 6}, start_id=PAD)
    batch = converter.convert([[{"inputs": ids(*inputs), "targets": ids(*targets)}]])
    assert row_statistics.count([batch], SPECIAL).chosen == chosen


def test_labels_are_counted():
    converter = features.EncoderFeatures(lengths={"inputs": 2, "targets": 2}, next_sentence=True)
    rows = [[{"inputs": ids(5), "targets": ids(5), "next_sentence_labels": np.int32(label)}] for label in (1, 0, 1)]
    numbers = row_statistics.count([converter.convert(rows)], SPECIAL)
    assert numbers.labels == {0: 1, 1: 2}


VOCABULARY = toy.word_vocabulary(
    "<pad>", "</s>", "<unk>", "<mask>", *toy.words(200), *(f"<extra_id_{k}>" for k in range(40))
)


def share(objective, reader, *, lengths) -> row_statistics.RowNumbers:
    """The numbers of 60 texts that fill rows of these lengths."""
    made = toy.features(VOCABULARY, *objective.makes)
    bound = objective.bind(lengths, made)
    rng = np.random.default_rng(0)
    examples = []
    for index in range(60):
        tokens = rng.integers(4, 204, size=bound.raw_length).astype(np.int32)
        examples.append(bound.example({"targets": tokens}, corruption.example_rng(0, 0, index)))
    converter = readers.make_converter(reader, example=examples[0], lengths=lengths, vocabulary=VOCABULARY)
    batches = [converter.convert([[converter.trim(example)[0]]]) for example in examples]
    special = vocabularies.special_tokens(vocabularies.SeqioVocabulary(VOCABULARY))
    return row_statistics.count(batches, special)


SQUARE = {"inputs": 96, "targets": 96}


def test_published_shares_of_loss():
    """15 % of masked language models, all of causal ones, a sixth of XLNet's, 15 % noise behind T5's sentinels."""
    for objective in (EXACT, REPLACED_TOKENS, SPANS):
        numbers = share(objective, "encoder", lengths=SQUARE)
        assert numbers.chosen == pytest.approx(0.15, abs=0.01)  # of 95 tokens a whole number is chosen
        assert numbers.sides["encoder"].padding == 0
    assert REPLACED_TOKENS.judged and not EXACT.judged
    assert share(CausalLM(), "decoder", lengths={"targets": 96}).sides["decoder"].loss_share == 1
    numbers = share(PermutationLM(), "permutation", lengths=SQUARE)
    assert numbers.sides["encoder"].loss_share == 1 / 6
    numbers = share(SpanCorruption(), "encoder-decoder", lengths={"inputs": 96, "targets": 30})
    assert numbers.chosen == pytest.approx(0.15, abs=0.005)
    assert numbers.sides["encoder"].padding == 0
    numbers = share(PrefixLM(), "prefix-lm", lengths=SQUARE)
    assert numbers.sides["decoder"].loss_share == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("name", ["iid_15_r10s90_f", "iid_15_m_f", "iid_15_d_d", "iid_15_u_u", "span_3_15_u_u"])
def test_the_grid_of_t5_chooses_what_its_names_say(name):
    numbers = share(t5_objective(name), "encoder-decoder", lengths=SQUARE)
    expected = None if name == "iid_15_d_d" else pytest.approx(0.15, abs=0.02)  # which drops without a mark
    assert numbers.chosen == expected
