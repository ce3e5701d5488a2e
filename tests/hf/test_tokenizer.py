"""Tokenizer files: the ids of transformers' tokenizer are those of our vocabulary."""

import json

import pytest
import sentencepiece
import tokenizers

from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.families import albert, xlm
from t2t.hf import export, tokenizer
from tests.hf import lines, tiny
from tests.shared_data import shared_data

T5_FRAME = {"before": [], "after": [1], "input_names": ["input_ids", "attention_mask"]}


@pytest.fixture(scope="session")
def trained():
    """Vocabularies of the kinds that `train_sentencepiece` makes."""
    corpus = lines.corpus()
    return {
        "unigram": vocabularies.train_sentencepiece(corpus, size=1200),
        "bpe": vocabularies.train_sentencepiece(corpus, size=1200, model_type="bpe"),
        "few sentinels": vocabularies.train_sentencepiece(corpus, size=1200, sentinels=7, mask=False),
        "byte fallback": vocabularies.train_sentencepiece(corpus, size=1400, byte_fallback=True),
        "bytes": vocabularies.ByteVocabulary(),
    }


KINDS = ["unigram", "bpe", "few sentinels", "bytes"]


def library(vocabulary, **frame) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(json.dumps(tokenizer.tokenizer_json(vocabulary, **frame)))


def assert_same_ids(vocabulary, texts, encode) -> None:
    ours = vocabulary.encode_batch(texts)
    differ = [
        (text, mine, theirs) for text, mine, theirs in zip(texts, ours, encode(texts), strict=True) if mine != theirs
    ]
    assert differ == []


def plain(loaded):
    return lambda texts: [row.ids for row in loaded.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_lines(trained, kind):
    """Hostile ones without letters of several accents, whose order the library does not keep for SentencePiece."""
    theirs, known = plain(library(trained[kind])), kind == "bytes"
    assert_same_ids(trained[kind], lines.varied(5000), theirs)
    hostile = [text for text in lines.hostile(5500) if known or not lines.has_several_accents(text)]
    assert len(hostile) > 4500
    assert_same_ids(trained[kind], hostile, theirs)


def test_bytes_spell_what_a_vocabulary_lacks(trained):
    texts = [word for word in lines.WORDS] + lines.corpus()[:200]
    assert_same_ids(trained["byte fallback"], texts, plain(library(trained["byte fallback"])))


def test_the_real_t5_vocabulary():
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "spiece.model"))
    text = shared_data("wikitext2_heldout").rglob("*valid*")
    # "<unk>" in a text is the token in transformers and text in t2t.
    texts = [line.replace("<unk>", "word") for path in text for line in path.read_text(encoding="utf-8").split("\n")]
    texts = texts[:2000]
    assert_same_ids(vocabulary, [*texts, *lines.WORDS], plain(library(vocabulary)))
    # The ids of the published T5, the first sentinel the highest.
    assert library(vocabulary).encode("<extra_id_0>. Hello", add_special_tokens=False).ids == [32099, 5, 8774]


def test_real_word_pieces_are_framed_and_typed():
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "bert-base-cased", "vocab.txt"))
    loaded = library(vocabulary, before=[vocabulary.bos_id], after=[vocabulary.eos_id])
    pair = loaded.encode("Hello wörld", "Bye")
    assert pair.tokens == ["[CLS]", "Hello", "w", "##ö", "##rl", "##d", "[SEP]", "Bye", "[SEP]"]
    assert pair.type_ids == [0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert pair.ids[0] == 101 and pair.ids[-1] == 102


def test_real_byte_level_bpe_gets_its_start_token():
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "gpt2", "vocab.json"))
    texts = lines.varied(500)
    assert_same_ids(vocabulary, texts, plain(library(vocabulary)))
    assert library(vocabulary, before=[50256]).encode("Hi").ids[0] == 50256
    assert library(vocabulary).encode("Hi").ids[0] != 50256


def test_a_tokenizer_json_that_frames_texts_keeps_its_frame():
    own = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3}, unk_token="[UNK]")
    )
    own.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    own.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    vocabulary = vocabularies.TokenizerVocabulary(own.to_str())
    assert library(vocabulary, before=[1], after=[2]).encode("a").ids == [1, 3, 2]


def test_template_of_t5(trained):
    loaded = library(trained["unigram"], after=[1])
    first, second = (trained["unigram"].encode(text) for text in ("a text", "another"))
    assert loaded.encode("a text").ids == [*first, 1]
    assert loaded.encode("a text", "another").ids == [*first, 1, *second, 1]


@pytest.mark.parametrize(("before", "after", "first"), [([0], [], 0), ([0], [1], 0), ([], [1], None), ([], [], None)])
def test_only_a_token_before_the_text_is_its_first(trained, tmp_path, before, after, first):
    assert tokenizer.first_token(tmp_path) is None
    frame = {**T5_FRAME, "before": before, "after": after}
    tokenizer.write(tmp_path, trained["bytes"], **frame)
    assert tokenizer.first_token(tmp_path) == first


def test_spiece_model_is_what_t5s_readers_expect(trained, tmp_path):
    vocabulary = trained["unigram"]
    tokenizer.write(tmp_path, vocabulary, **T5_FRAME)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    assert processor.get_piece_size() == vocabulary.size - 100  # its readers add 100 sentinels
    assert processor.encode("The language reference.") == vocabulary.encode("The language reference.")
    assert vocabularies.Vocabulary.load(tmp_path) == vocabulary


def test_the_real_albert_vocabulary_has_small_letters_and_undivided_punctuation():
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "albert", "spiece.model"))
    # Runs of one character have several equally good segmentations.
    texts = [*lines.corpus()[:500], *lines.WORDS, "ΑΣ ΟΔΟΣ Σ", "İstanbul", "say ``Hey'' (twice)", "a-b £5 – €6."]
    texts = [text for text in texts if "===" not in text and "***" not in text and "---" not in text]
    loaded = library(vocabulary, before=[vocabulary.bos_id], after=[vocabulary.eos_id])
    assert_same_ids(vocabulary, texts, plain(loaded))
    pair = loaded.encode("Hello wörld", "Bye.")
    assert pair.tokens == ["[CLS]", "▁hello", "▁world", "[SEP]", "▁by", "e", ".", "[SEP]"]
    assert pair.type_ids == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_real_roberta_vocabulary():
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "roberta", "vocab.json"))
    loaded = library(vocabulary, before=[0], after=[2], between=[2])
    golden = {"Hello": [31414], " Hello": [20920], "a <mask> b": [102, 50264, 741], "a<mask>b": [102, 50264, 428]}
    for text, ids in golden.items():
        assert vocabulary.encode(text) == ids
        assert loaded.encode(text).ids == [0, *ids, 2]
    assert loaded.encode("Hello", " Hello").tokens == ["<s>", "Hello", "</s>", "</s>", "ĠHello", "</s>"]


def test_the_numbering_of_fairseq(tmp_path):
    source = shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model").read_bytes()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(source)
    vocabulary = vocabularies.Vocabulary.load(tmp_path)
    names = ["input_ids", "attention_mask"]
    tokenizer.write(tmp_path, vocabulary, before=[0], after=[2], between=[2], input_names=names)
    processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in
                  (source, (tmp_path / "sentencepiece.bpe.model").read_bytes())]  # fmt: skip
    # Readers number the pieces of the model from 1, and the mask after them.
    assert [len(processor) for processor in processors] == [1000, 1000]
    assert vocabulary.mask_id == 1001 and vocabulary.size == 1002
    loaded = library(vocabulary, before=[0], after=[2], between=[2])
    text = "This is a test"
    assert loaded.encode(text).ids == [0, *(token + 1 for token in processors[1].encode(text)), 2]
    pair = loaded.encode("This", "is <mask>")
    assert [pair.ids[0], *pair.ids[-1:]] == [0, 2] and pair.ids.count(2) == 3 and 1001 in pair.ids
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    tokens = {name: value for name, value in config.items() if name.endswith("_token")}
    assert tokens == {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>",
                      "sep_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}  # fmt: skip


def test_spiece_model_keeps_another_number_of_sentinels(trained, tmp_path):
    tokenizer.write(tmp_path, trained["few sentinels"], **T5_FRAME)
    assert vocabularies.Vocabulary.load(tmp_path) == trained["few sentinels"]


def test_a_model_without_sentinels_comes_back_without(tmp_path):
    """Readers of a SentencePiece model of T5's layout add 100 unless they are told otherwise."""
    vocabulary = vocabularies.train_sentencepiece(lines.corpus(), size=1000, sentinels=0)
    tokenizer.write(tmp_path, vocabulary, **T5_FRAME)
    assert vocabularies.Vocabulary.load(tmp_path) == vocabulary


def test_tokenizer_config(trained, tmp_path):
    written = tokenizer.write(tmp_path, trained["unigram"], **T5_FRAME, max_length=512)
    assert sorted(written) == sorted(path.name for path in tmp_path.iterdir())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    sentinels = config.pop("additional_special_tokens")
    assert sentinels == [f"<extra_id_{i}>" for i in range(100)]
    assert config == {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "right", "truncation_side": "right", "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
        "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>",
    }  # fmt: skip
    assert "extra_special_tokens" not in (tmp_path / "special_tokens_map.json").read_text()


def test_names_of_berts_special_tokens(tmp_path):
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "bert-base-cased", "vocab.txt"))
    names = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer.write(tmp_path, vocabulary, before=[101], after=[102], input_names=names)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    tokens = {name: value for name, value in config.items() if name.endswith("_token")}
    assert tokens == {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
                      "mask_token": "[MASK]"}  # fmt: skip
    assert (tmp_path / "vocab.txt").read_text() == shared_data("tokenizers", "bert-base-cased", "vocab.txt").read_text()


def test_files_of_byte_level_bpe(tmp_path):
    folder = shared_data("tokenizers", "gpt2")
    vocabulary = vocabularies.Vocabulary.load(folder / "vocab.json")
    tokenizer.write(tmp_path, vocabulary, before=[], after=[], input_names=["input_ids", "attention_mask"])
    assert json.loads((tmp_path / "vocab.json").read_text()) == json.loads((folder / "vocab.json").read_text())
    assert (tmp_path / "merges.txt").read_text().split("\n")[1:] == (folder / "merges.txt").read_text().split("\n")[1:]
    (tmp_path / "tokenizer.json").unlink()
    assert vocabularies.Vocabulary.load(tmp_path).encode("Hello there") == vocabulary.encode("Hello there")


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_opens_the_directory_and_gives_the_same_ids(trained, kind, tmp_path):
    import transformers

    vocabulary = trained[kind]
    tokenizer.write(tmp_path, vocabulary, **T5_FRAME, max_length=512)
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = lines.comparable(2000)
    assert len(texts) == 2000
    assert_same_ids(vocabulary, texts, lambda t: opened(t, add_special_tokens=False)["input_ids"])
    batch = opened(["a text", "a longer text"], padding=True)
    assert sorted(batch) == ["attention_mask", "input_ids"]
    assert batch["input_ids"][0][-1] == vocabulary.pad_id and batch["input_ids"][1][-1] == vocabulary.eos_id
    assert opened.decode(vocabulary.encode("Hello, world."), skip_special_tokens=True) == "Hello, world."
    assert len(opened) == vocabulary.size
    special = ["pad", "eos", "unk", "mask"] if vocabulary.mask_id is not None else ["pad", "eos", "unk"]
    assert [getattr(opened, f"{role}_token_id") for role in special] == [
        getattr(vocabulary, f"{role}_id") for role in special
    ]


PUBLISHED = ("bert-base-cased/vocab.txt", "roberta/vocab.json", "gpt2/vocab.json", "albert/spiece.model",
             "t5/spiece.model")  # fmt: skip


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("published", PUBLISHED)
def test_texts_come_back_as_in_transformers(published, tmp_path):
    """Spaces included, which its classes kept or ate around added tokens (huggingface/transformers#16334)."""
    import transformers

    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", published))
    end = vocabulary.eos_id
    frame = {"before": [], "after": [end], "input_names": ["input_ids", "attention_mask"]}
    tokenizer.write(tmp_path, vocabulary, **frame)
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["Hello, world.", "a  b", " leading", "trailing ", "it's n't 3.14 , ok ?", "a café", ""]
    for ids in vocabulary.encode_batch(texts):
        assert opened.decode([*ids, end], skip_special_tokens=True) == vocabulary.decode([*ids, end])


ALBERT = albert.with_head(
    albert.albert(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=1200, embed_dim=5), heads.MaskedLM()
)


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["framed", "unigram"])
def test_an_albert_with_a_vocabulary_of_our_own(trained, kind, tmp_path):
    """Its class of transformers 5 fails on models without [CLS] and [SEP]: no export names it, and ours have them."""
    import transformers

    framed = kind == "framed"
    few = lines.corpus()[:2000]
    vocabulary = vocabularies.train_sentencepiece(few, size=600, framed=True) if framed else trained[kind]
    export.export(tmp_path, config=ALBERT, params=tiny.params(ALBERT), vocabulary=vocabulary)
    texts = [text for text in few[:200] if not any(run in text for run in ("==", "**", "--", ".."))]
    around = [[2], [3]] if framed else [[], [1]]
    expected = [around[0] + row + around[1] for row in vocabulary.encode_batch(texts)]
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert opened(texts)["input_ids"] == expected
    pair = [*around[0], *vocabulary.encode("a text"), *around[1], *vocabulary.encode("another"), *around[1]]
    assert opened("a text", "another")["input_ids"] == pair
    if not framed:
        return
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "spiece.model").write_bytes((tmp_path / "spiece.model").read_bytes())
    own = transformers.AlbertTokenizer.from_pretrained(tmp_path / "alone")
    assert own(texts)["input_ids"] == expected
    assert own("a text", "another")["input_ids"] == pair


MOSES = vocabularies.MosesVocabulary(
    json.dumps({piece: i for i, piece in enumerate(("<s>", "</s>", "<pad>", "<unk>", "<special0>", "<special1>", "l",
                                                    "o", "w</w>", "low</w>", ",</w>"))}),
    "l o\nlo w</w>\n",
)  # fmt: skip
XLM = xlm.with_head(xlm.xlm(num_layers=1, d_model=12, num_heads=3, vocab_size=11, max_positions=9), heads.MaskedLM())


def test_words_of_moses_have_the_files_of_their_own_class(tmp_path):
    written = export.export(tmp_path, config=XLM, params=tiny.params(XLM), vocabulary=MOSES)
    assert {"vocab.json", "merges.txt", "tokenizer_config.json"} < set(written)
    assert "tokenizer.json" not in written
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (config["tokenizer_class"], config["do_lowercase_and_remove_accent"]) == ("XLMTokenizer", True)
    assert (config["mask_token"], config["cls_token"]) == ("<special1>", "</s>")
    assert config["additional_special_tokens"] == ["<special0>", "<special1>"]
    assert "pip install sacremoses" in (tmp_path / "README.md").read_text()
    again = vocabularies.Vocabulary.load(tmp_path)
    assert again.encode("Low, <special1> low") == MOSES.encode("Low, <special1> low")
    assert (again.mask_id, again.special_ids) == (5, MOSES.special_ids)
    special = json.loads((tmp_path / "config.json").read_text())
    assert (special["pad_token_id"], special["mask_index"]) == (2, 5)


def test_words_of_moses_are_refused_where_their_class_would_frame_them_otherwise(tmp_path):
    config = tiny.T5
    with pytest.raises(
        ValueError, match=r"XLMTokenizer, which writes .*'before': \[0\].*trained with .*'before': \[\]"
    ):
        export.export(tmp_path / "out", config=config, params=tiny.params(config), vocabulary=MOSES)
    assert not (tmp_path / "out").exists()


@pytest.mark.hf
@pytest.mark.slow
def test_transformers_opens_words_of_moses(tmp_path):
    pytest.importorskip("sacremoses")
    import transformers

    export.export(tmp_path, config=XLM, params=tiny.params(XLM), vocabulary=MOSES)
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Low, löw <special1>", "", "l. low"):
        assert opened(text)["input_ids"] == [0, *MOSES.encode(text), 1]
    assert opened("low", "low")["input_ids"] == [0, 9, 1, 9, 1]
