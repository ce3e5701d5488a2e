import functools
import json

import pytest

from t2t import vocabulary as vocabularies
from tests.hf import lines
from tests.shared_data import shared_data
from tests.vocabulary import texts


@functools.cache
def load(name: str) -> vocabularies.Vocabulary:
    return vocabularies.Vocabulary.load(shared_data("tokenizers", name))


def special_ids(vocabulary):
    return tuple(getattr(vocabulary, f"{role}_id") for role in ("pad", "bos", "eos", "unk", "mask"))


def test_special_ids():
    assert special_ids(load("gpt2")) == (None, 50256, 50256, None, None)
    assert special_ids(load("roberta")) == (1, 0, 2, 3, 50264)
    assert special_ids(load("bert-base-cased")) == (0, 101, 102, 100, 103)
    assert (load("gpt2").size, load("roberta").size, load("bert-base-cased").size) == (50257, 50265, 28996)


def test_published_ids():
    assert load("gpt2").encode("Hello world") == [15496, 995]
    assert load("gpt2").encode(" Hello world") == [18435, 995]
    assert load("bert-base-cased").encode("Hello, world!") == [8667, 117, 1362, 106]
    assert load("bert-base-uncased").encode("Hello, Wörld!") == [7592, 1010, 2088, 999]


def test_spaces_around_the_mask_of_roberta():
    """The mask takes the space before it, not the one after."""
    roberta = load("roberta")
    mask = roberta.mask_id
    assert roberta.encode("Hello") == [31414]
    assert roberta.encode(" Hello") == [20920]
    assert roberta.encode("a <mask> b") == [102, mask, 741]
    assert roberta.encode("a<mask>b") == [102, mask, 428]


def test_decoding():
    assert load("gpt2").decode(load("gpt2").encode("  odd   spaces, é 日本\n")) == "  odd   spaces, é 日本\n"
    bert = load("bert-base-cased")
    assert bert.decode([101, *bert.encode("unaffable Höhe"), 102, 0, 0]) == "unaffable Höhe"


@pytest.mark.hf
@pytest.mark.parametrize("name", ["gpt2", "roberta", "bert-base-cased", "bert-base-uncased"])
def test_ids_equal_those_of_transformers(name):
    import transformers

    kind = {"gpt2": transformers.GPT2Tokenizer, "roberta": transformers.RobertaTokenizer}
    options = {
        # As the published tokenizer.json of roberta-base; the class alone does not say it.
        "roberta": {"mask_token": transformers.AddedToken("<mask>", lstrip=True)},
        "bert-base-cased": {"do_lower_case": False},
        # This copy of the vocabulary writes its special tokens in lower case.
        "bert-base-uncased": {f"{role}_token": f"[{role}]" for role in ("unk", "cls", "sep", "mask")},
    }
    path = shared_data("tokenizers", name)
    theirs = kind.get(name, transformers.BertTokenizer).from_pretrained(path, **options.get(name, {}))
    some = [*texts.varied_lines(), *lines.ten_thousand("[CLS]", "[MASK]", "<s>", "<mask>", "<|endoftext|>")]
    ours = load(name)
    expected = theirs(some, add_special_tokens=False)["input_ids"]
    assert ours.encode_batch(some) == expected
    assert [ours.decode(ids) for ids in expected[:300]] == [
        theirs.decode(ids, clean_up_tokenization_spaces=False) for ids in expected[:300]
    ]


def write_bpe(directory, vocab, merges):
    (directory / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges), ""]
    (directory / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return directory


GPT = {"<unk>": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, ".</w>": 5, "ab</w>": 6}


def test_words_of_gpt_are_in_lower_case_and_end_in_a_mark(tmp_path):
    vocabulary = vocabularies.Vocabulary.load(write_bpe(tmp_path, GPT, [("a", "b</w>")]))
    assert special_ids(vocabulary) == (None, None, None, 0, None)
    assert vocabulary.encode("AB á aab. z <unk>") == [6, 3, 1, 6, 5, 0, 0]
    assert vocabulary.decode([6, 3, 1, 6]) == "ab a aab"


@pytest.mark.parametrize(("special", "found"), [("</s>", r"\['<unk>', '</s>'\]"), ("<|endoftext|>", "endoftext")])
def test_other_vocabularies_whose_words_end_in_a_mark_are_refused(tmp_path, special, found):
    """Their files look alike, but their text is cut into words in other ways (CLIP)."""
    write_bpe(tmp_path, GPT | {special: 7}, [("a", "b</w>")])
    with pytest.raises(ValueError, match=rf"{found}.*tokenizer.json"):
        vocabularies.Vocabulary.load(tmp_path)


@pytest.mark.hf
def test_ids_of_gpt_equal_those_of_transformers(tmp_path):
    import tokenizers
    import transformers

    some = list(texts.varied_lines())
    learner = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    learner.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    learner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=3000, special_tokens=["<unk>"], limit_alphabet=100, end_of_word_suffix="</w>", show_progress=False
    )
    learner.train_from_iterator(some, trainer)
    model = json.loads(learner.to_str())["model"]
    write_bpe(tmp_path, model["vocab"], model["merges"])
    theirs = transformers.OpenAIGPTTokenizer.from_pretrained(tmp_path)
    ours = vocabularies.Vocabulary.load(tmp_path)
    some += [*lines.ten_thousand("<unk>"), "a <unk> b", "A<unk>B", "Ünïted  STATES of America's", "## # x##y"]
    expected = theirs(some, add_special_tokens=False)["input_ids"]
    assert any(ours.unk_id in ids for ids in expected)
    assert ours.encode_batch(some) == expected
    assert [ours.decode(ids) for ids in expected[:300]] == [
        theirs.decode(ids, clean_up_tokenization_spaces=False) for ids in expected[:300]
    ]


def test_any_tokenizer_json():
    t5 = vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "tokenizer.json"))
    assert special_ids(t5) == (0, None, 1, 2, None)
    assert t5.sentinels == tuple(range(32099, 31999, -1))
    assert t5.encode("Hello <extra_id_0>") == [8774, 32099]


def test_sentinels_stay_where_they_are_when_tokens_are_added():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(shared_data("tokenizers", "t5", "tokenizer.json")))
    tokenizer.add_tokens(["newtoken", "another"])
    grown = vocabularies.TokenizerVocabulary(tokenizer.to_str())
    assert grown.size == 32102
    assert grown.sentinels[0] == 32099


def test_explicit_names():
    bert = load("bert-base-cased")
    vocabulary = vocabularies.TokenizerVocabulary(bert.definition, names={"mask": "[unused1]", "bos": ""})
    assert (vocabulary.mask_id, vocabulary.bos_id) == (bert.pieces().index("[unused1]"), 101)
    with pytest.raises(ValueError, match="roles"):
        vocabularies.TokenizerVocabulary(bert.definition, names={"begin": "[CLS]"})


def test_truncation_and_padding_of_the_file_do_not_act():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_str(load("bert-base-cased").definition)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=10)
    assert len(vocabularies.TokenizerVocabulary(tokenizer.to_str()).encode("one two three four")) == 4
