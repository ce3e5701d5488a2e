import random

import hypothesis
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from t2t.vocabulary import sentencepiece_model
from tests.shared_data import shared_data
from tests.vocabulary import texts


@pytest.fixture(scope="module")
def t5() -> vocabularies.Vocabulary:
    return vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "spiece.model"))


def test_t5_has_a_hundred_sentinels_beyond_its_pieces(t5):
    assert (t5.size, t5.pad_id, t5.eos_id, t5.unk_id, t5.bos_id, t5.mask_id) == (32100, 0, 1, 2, None, None)
    assert t5.sentinels == tuple(range(32099, 31999, -1))


def test_sentinels_in_text(t5):
    """The published ids of T5 and of seqio; an implementation that puts a space after a sentinel has 3 before 5."""
    assert t5.encode("<extra_id_0>. Hello") == [32099, 5, 8774]
    assert t5.encode("Hello <extra_id_0>, world") == [8774, 32099, 6, 296]
    assert t5.encode("jel<extra_id_0> ly") == [*t5.encode("jel"), 32099, *t5.encode("ly")]
    assert t5.decode([8774, 32099, 6, 296]) == "Hello <extra_id_0>, world"
    assert t5.decode([8774, 32099, 296, 1, 5], skip_sentinels=True) == "Hello world"


def test_spaces(t5):
    assert t5.encode("   space   ") == t5.encode("space")
    assert t5.encode("a  b") == t5.encode("a b")
    assert t5.encode("a\nb") == t5.encode("a b")
    assert t5.encode("") == t5.encode("  ") == []


@pytest.mark.slow
def test_ids_and_texts_equal_those_of_seqio(t5):
    import seqio

    theirs = seqio.SentencePieceVocabulary(str(shared_data("tokenizers", "t5", "spiece.model")), extra_ids=100)
    lines = [*texts.varied_lines(), *texts.SENTINELS]
    choice = random.Random(0)
    for line in lines[:1000]:
        words = line.split(" ")
        words.insert(
            choice.randint(0, len(words)), f"<extra_id_{choice.randint(0, 110)}>{choice.choice(['', '.', 's'])}"
        )
        lines.append(" ".join(words))
    expected = [list(theirs.encode(line)) for line in lines]
    assert t5.encode_batch(lines) == expected
    assert [t5.decode(ids) for ids in expected] == [theirs.decode(ids) for ids in expected]


@pytest.mark.hf
def test_ids_equal_those_of_transformers(t5):
    import transformers

    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(shared_data("tokenizers", "t5", "tokenizer.json")))
    lines = [line for line in texts.varied_lines() if "</s>" not in line]
    assert t5.encode_batch(lines) == theirs(lines, add_special_tokens=False)["input_ids"]


@hypothesis.given(st.text(st.characters(codec=None), max_size=30))
def test_any_string_has_ids(text):
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "small_test_spm", "seqio_sentencepiece.model"))
    assert all(0 <= token < vocabulary.size for token in vocabulary.encode(text))


def test_a_batch_equals_its_texts(t5):
    lines = [f"line {i} of many" for i in range(70)]
    assert t5.encode_batch(lines) == [t5.encode(line) for line in lines]


def test_xlm_r_numbers_pieces_one_higher(tmp_path):
    """The layout of XLM-R: <s> 0, <pad> 1, </s> 2, <unk> 3, then piece + 1, <mask> the last id."""
    sentencepiece = pytest.importorskip("sentencepiece")
    path = tmp_path / "sentencepiece.bpe.model"
    path.write_bytes(shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model").read_bytes())
    vocabulary = vocabularies.Vocabulary.load(path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    number = processor.get_piece_size()
    assert (vocabulary.bos_id, vocabulary.pad_id, vocabulary.eos_id, vocabulary.unk_id) == (0, 1, 2, 3)
    assert (vocabulary.mask_id, vocabulary.size) == (number + 1, number + 2)
    for text in ("This is a test", "I was born in 92000, and this is falsé."):
        expected = [piece + 1 if piece else 3 for piece in processor.encode(text)]
        assert vocabulary.encode(text) == expected
        assert vocabulary.decode([0, *expected, 2, 1]) == processor.decode(processor.encode(text))
    assert vocabulary.encode("a <mask>")[-1] == vocabulary.mask_id
    assert vocabulary.pieces()[4] == processor.id_to_piece(3)
    assert len(vocabulary.pieces()) == vocabulary.size
    vocabulary.save(tmp_path / "saved")
    assert vocabularies.Vocabulary.load(tmp_path / "saved") == vocabulary


def test_models_that_hold_their_sentinels_get_no_more():
    """mT5's model holds its 100 extra ids, T5's does not."""
    small = shared_data("tokenizers", "small_test_spm", "seqio_sentencepiece.model").read_bytes()
    once = sentencepiece_model.with_pieces(small, sentinels=None)
    assert sentencepiece_model.with_pieces(once, sentinels=None) == once
    assert vocabularies.SentencePieceVocabulary(once).size == 126
    with pytest.raises(ValueError, match="holds 100 sentinels"):
        sentencepiece_model.with_pieces(once, sentinels=50)


def test_only_the_layout_of_t5_gets_sentinels_unasked():
    other = shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model")
    assert vocabularies.Vocabulary.load(other).sentinels == ()
    assert len(vocabularies.Vocabulary.load(other, sentinels=7).sentinels) == 7


def test_albert_reads_lower_case_without_accents():
    albert = vocabularies.Vocabulary.load(shared_data("tokenizers", "albert", "spiece.model"))
    assert (albert.pad_id, albert.unk_id, albert.bos_id, albert.eos_id, albert.mask_id) == (0, 1, 2, 3, 4)
    assert albert.encode("Café ``Hello''") == albert.encode('cafe "hello"')
    assert albert.unk_id not in albert.encode("Hello WORLD")


def test_damaged_models_are_refused():
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        vocabularies.SentencePieceVocabulary(b"\xff\xff no model")
    with pytest.raises(ValueError, match="no pieces"):
        vocabularies.SentencePieceVocabulary(b"")
