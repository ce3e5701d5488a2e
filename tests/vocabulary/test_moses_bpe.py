import json
import pickle

import pytest

from t2t import vocabulary as vocabularies
from t2t.vocabulary import moses, moses_bpe
from tests.hf import lines, version4
from tests.vocabulary import texts

SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{k}>" for k in range(10))]
PIECES = [*SPECIAL, "l", "o", "w", "e", "r", "w</w>", "r</w>", "low</w>", "low", "er</w>", "lower</w>", ",</w>", "L"]
# With counts behind the pairs, as released; the last line has no end and does not count.
MERGES = "l o 9\nlo w</w> 8\nlo w 7\ne r</w> 6\nlow er</w> 5\nw e"
VOCAB = json.dumps({piece: i for i, piece in enumerate(PIECES)})
LOW = moses_bpe.MosesVocabulary(VOCAB, MERGES)


def write(directory, *, vocab=VOCAB, merges=MERGES, **config):
    (directory / "vocab.json").write_text(vocab, encoding="utf-8")
    (directory / "merges.txt").write_text(merges, encoding="utf-8")
    if config:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def written(vocabulary, text):
    return [vocabulary.pieces()[token] for token in vocabulary.encode(text)]


def test_special_ids():
    assert (LOW.bos_id, LOW.eos_id, LOW.pad_id, LOW.unk_id, LOW.mask_id) == (0, 1, 2, 3, 5)
    assert LOW.special_ids == tuple(range(14))
    assert (LOW.size, LOW.start_id) == (27, 0)


def test_pieces_of_words():
    assert written(LOW, "Löw, lower") == ["low</w>", ",</w>", "lower</w>"]
    assert written(LOW, "lowe") == ["low", "<unk>"]  # e</w> is no piece
    assert written(LOW, "lo") == ["l", "<unk>"]
    assert written(LOW, "low<special1>er <s>ow") == ["low</w>", "<special1>", "er</w>", "<s>", "o", "w</w>"]
    assert LOW.encode("") == LOW.encode(" \u200b\n") == []


def test_capitals_and_accents_may_stay():
    cased = moses_bpe.MosesVocabulary(VOCAB, MERGES, lowercase=False)
    assert written(cased, "Low löw") == ["L", "o", "w</w>", "l", "<unk>", "w</w>"]
    assert cased != LOW


def test_decoding():
    assert LOW.decode([0, *LOW.encode("lower, low"), 1, 2]) == "lower , low"
    assert LOW.decode(LOW.encode("low <special1> low")) == "low <special1> low"


@pytest.mark.parametrize("lowercase", [True, False])
def test_published_files_and_our_own(tmp_path, lowercase):
    says = {} if lowercase else {"do_lowercase_and_remove_accent": False}
    loaded = vocabularies.Vocabulary.load(write(tmp_path, **says))
    assert loaded.encode("Low") == moses_bpe.MosesVocabulary(VOCAB, MERGES, lowercase=lowercase).encode("Low")
    loaded.starting_with(1).save(tmp_path / "ours")
    again = vocabularies.Vocabulary.load(tmp_path / "ours")
    assert (again.start_id, again.lowercase, type(again)) == (1, lowercase, moses_bpe.MosesVocabulary)
    assert pickle.loads(pickle.dumps(again)) == again
    assert vocabularies.Vocabulary.load(tmp_path / "merges.txt") == loaded


def test_the_tokenizer_class_of_the_files_must_be_the_one(tmp_path):
    write(tmp_path, tokenizer_class="FlaubertTokenizer")
    with pytest.raises(ValueError, match="is read by FlaubertTokenizer, .* t2t knows that of XLMTokenizer"):
        vocabularies.Vocabulary.load(tmp_path)
    write(tmp_path, tokenizer_class="XLMTokenizer", mask_token="<special3>")
    assert vocabularies.Vocabulary.load(tmp_path).mask_id == 7


def test_added_tokens_must_be_in_the_vocabulary(tmp_path):
    listed = {str(i): {"content": piece} for i, piece in enumerate(SPECIAL)}
    assert vocabularies.Vocabulary.load(write(tmp_path, added_tokens_decoder=listed)) == LOW
    (tmp_path / "added_tokens.json").write_text('{"<new>": 27}')
    with pytest.raises(ValueError, match="tokens were added .*: <new>"):
        vocabularies.Vocabulary.load(tmp_path)


@pytest.mark.parametrize(
    ("vocab", "problem"), [("[]", "no JSON object"), ('{"a": "b"}', "ids are integers"), ("{}", "no <unk>")]
)
def test_damaged_vocabularies_are_refused(vocab, problem):
    with pytest.raises(ValueError, match=problem):
        moses_bpe.MosesVocabulary(vocab, "")


def learned(directory, *, lowercase):
    """A vocabulary learned from words of many languages, without some of its pieces, as the released ones are."""
    import tokenizers

    first = moses_bpe.MosesVocabulary(json.dumps({"<unk>": 0}), "", lowercase=lowercase)
    words = [" ".join(first._words(line)) for line in texts.varied_lines()]
    learner = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=4000, special_tokens=SPECIAL, limit_alphabet=300, end_of_word_suffix="</w>", show_progress=False
    )
    learner.train_from_iterator(words, trainer)
    model = json.loads(learner.to_str())["model"]
    pieces = [piece for i, piece in enumerate(model["vocab"]) if i < len(SPECIAL) or i % 9]
    merges = "".join(f"{' '.join(pair)} {count}\n" for count, pair in enumerate(model["merges"]))
    vocab = json.dumps({piece: i for i, piece in enumerate(pieces)})
    return write(directory, vocab=vocab, merges=merges, do_lowercase_and_remove_accent=lowercase)


OPEN = """
opened = transformers.XLMTokenizer.from_pretrained(given["path"])
texts = json.load(open(given["texts"]))
answer = opened(texts, add_special_tokens=False)["input_ids"]
"""


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_equal_those_of_transformers(tmp_path, lowercase):
    pytest.importorskip("sacremoses")
    import transformers

    theirs = transformers.XLMTokenizer.from_pretrained(learned(tmp_path, lowercase=lowercase))
    ours = vocabularies.Vocabulary.load(tmp_path)
    some = [*texts.varied_lines()[::3], *lines.ten_thousand(*SPECIAL)]
    expected = theirs(some, add_special_tokens=False)["input_ids"]
    assert any(ours.unk_id in ids for ids in expected)
    assert ours.encode_batch(some) == expected
    plain = [ids for ids in expected[:300] if not set(ids) & set(ours.special_ids)]
    assert [ours.decode(ids) for ids in plain] == [
        theirs.decode(ids, clean_up_tokenization_spaces=False) for ids in plain
    ]
    assert theirs("low")["input_ids"] == [ours.bos_id, *ours.encode("low"), ours.eos_id]


@pytest.mark.hf
@pytest.mark.hf4
@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_equal_those_of_transformers_4(tmp_path, lowercase):
    """Which puts text in lower case, character by character, before it cuts it; ours of such text are the same."""
    pytest.importorskip("sacremoses")
    learned(tmp_path, lowercase=lowercase)
    ours = vocabularies.Vocabulary.load(tmp_path)
    some = [*texts.varied_lines()[::8], *lines.hostile(400)]
    (tmp_path / "texts.json").write_text(json.dumps(some))
    theirs = version4.run(OPEN, path=str(tmp_path), texts=str(tmp_path / "texts.json"))
    given = ["".join(char.lower() for char in text) for text in some] if lowercase else some
    assert ours.encode_batch(given) == theirs


def test_words_are_cut_before_they_are_put_in_lower_case():
    """A capital after a point ends a sentence; in lower case the point would belong to an abbreviation."""
    assert moses.words("an end. Low") == ["an", "end", ".", "Low"]
    assert moses.words("an end. low") == ["an", "end.", "low"]
