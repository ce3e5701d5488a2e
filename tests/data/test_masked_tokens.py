import math
import re

import hypothesis
import numpy as np
import pytest
import tokenizers
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from t2t.data import corruption, denoisers, preprocessors
from t2t.data.masked_tokens import MaskedTokens
from tests.data import toy
from tests.vocabulary.trained import KINDS, LINES, trained

BOTH = ("inputs", "targets")
BYTES = vocabularies.ByteVocabulary()
OPTIONS = {
    "word": {"unit": "word"},
    "independent words": {"unit": "word", "count": "independent"},
    "rounded words": {"unit": "word", "count": "rounded"},
    "ngram": {"unit": "ngram"},
    "span": {"unit": "span"},
}


def bind(objective, vocabulary, inputs=None, targets=None, add_eos=True):
    lengths = {name: length for name, length in (("inputs", inputs), ("targets", targets)) if length}
    return objective.bind(lengths, toy.features(vocabulary, *BOTH, add_eos=add_eos))


def run(bound, tokens, *key):
    return bound.example({"targets": np.asarray(tokens, np.int32)}, corruption.example_rng(*(key or (0, 0, 0))))


def batch(bound, tokens, rows):
    text = np.tile(np.asarray(tokens, np.int32), (rows, 1))
    return bound.batch(text, seed=0, epoch=0, indices=np.arange(rows))


def within(count, trials, rate):
    return abs(count - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


def bert_like(*extra: str):
    return toy.word_vocabulary("[SEP]", *toy.words(40), "[PAD]", "[MASK]", "[CLS]", "[UNK]", *extra)


# What is never chosen, and what becomes of the rest.


def test_masked_tokens_stand_between_specials_that_are_never_chosen():
    vocabulary = bert_like()
    bound = bind(MaskedTokens(rate=0.5), vocabulary, 32, 32)
    assert bound.raw_length == 30
    text = np.tile([5, 6, 41, 44, 7], 6)  # with [PAD] and [UNK] inside
    for index in range(200):
        made = run(bound, text, 0, 0, index)
        np.testing.assert_array_equal(made["targets"], [43, *text, 0])
        weights = made["weights"]
        assert weights.dtype == np.int32
        assert not weights[np.isin(made["targets"], vocabulary.special_ids)].any()
        np.testing.assert_array_equal(made["inputs"][weights == 0], made["targets"][weights == 0])
        changed = made["inputs"][(weights == 1) & (made["inputs"] != 42)]
        assert not np.isin(changed, vocabulary.special_ids).any()


def test_masked_tokens_frequencies():
    rows, length = 500, 200
    made = batch(bind(MaskedTokens(), bert_like()), np.full(length, 7), rows)
    chosen = made["weights"].astype(bool)
    number = chosen.sum()
    assert within(number, rows * length, 0.15)
    assert within((made["inputs"][chosen] == 42).sum(), number, 0.8)
    assert within((made["inputs"][chosen] == 7).sum(), number, 0.1 + 0.1 / 40)


def test_recorded_masks():
    """Masks stay the same from version to version: a run goes on with those it began with."""
    made = run(bind(MaskedTokens(rate=0.5), bert_like()), np.arange(1, 31), 3, 5, 7)
    expected = [
        43, 1, 2, 3, 42, 42, 16, 7, 8, 9, 10, 11, 42, 13, 42, 42,
        16, 17, 42, 19, 42, 42, 22, 42, 42, 42, 26, 27, 42, 29, 42, 0,
    ]  # fmt: skip
    assert made["inputs"].tolist() == expected


def test_generators_of_replaced_tokens_keep_15_per_cent():
    rows, length = 400, 158
    objective = MaskedTokens(count="exact", mask=0.85, random=0.0)
    made = batch(bind(objective, bert_like()), np.tile([3, 9], length // 2), rows)
    chosen = made["weights"] == 1
    assert (chosen.sum(-1) == 24).all()  # round(0.15 * 160)
    masked = made["inputs"][chosen] == 42
    assert within(masked.sum(), chosen.sum(), 0.85)
    np.testing.assert_array_equal(made["inputs"][chosen][~masked], made["targets"][chosen][~masked])
    assert not chosen[:, [0, -1]].any()


def test_random_specials_only_when_asked():
    vocabulary = bert_like()
    for allowed in (False, True):
        objective = MaskedTokens(rate=0.9, mask=0.0, random=1.0, random_specials=allowed)
        made = batch(bind(objective, vocabulary), np.full(60, 7), 200)
        drawn = set(made["inputs"][made["weights"] == 1].tolist())
        assert drawn == (set(range(45)) if allowed else set(range(1, 41)))


def test_masked_tokens_without_bos_or_eos():
    made = run(bind(MaskedTokens(), BYTES, 9, 9), np.full(8, 70))
    assert made["targets"].tolist() == [70] * 8 + [1]
    made = run(bind(MaskedTokens(), bert_like(), 9, 9, add_eos=False), np.full(9, 7))
    assert made["targets"].tolist() == [7] * 9


# Words.


CONTINUES = {
    "word pieces": lambda piece: piece.startswith("##"),
    "sentence pieces": lambda piece: re.match(r"[^\W_]", piece) is not None,
    "byte pairs": lambda piece: piece[0] not in "ĠĊ",
    "bytes": lambda piece: piece not in (" ", "<0x0A>"),
}


def words_of(kind, tokens) -> list[list[int]]:
    """Places of the tokens of each word, by the look of the pieces."""
    vocabulary = trained(kind)
    pieces = vocabulary.pieces()
    found = []
    for place, token in enumerate(tokens):
        if token in vocabulary.special_ids:
            continue
        if found and found[-1][-1] == place - 1 and CONTINUES[kind](pieces[token]):
            found[-1].append(place)
        else:
            found.append([place])
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@hypothesis.settings(max_examples=12)
@hypothesis.given(st.integers(0, 300), st.integers(0, 40), st.sampled_from([0.15, 0.5]))
def test_a_word_is_never_split_and_specials_are_never_chosen(kind, options, first, cut, rate):
    vocabulary = trained(kind)
    tokens = vocabulary.encode("\n".join(LINES[first : first + 4]))[cut : cut + 90]
    special = [vocabulary.mask_id, vocabulary.pad_id, vocabulary.unk_id]
    tokens[40:40] = special
    made = run(bind(MaskedTokens(rate=rate, **options), vocabulary), tokens, 0, 0, first)
    text, weights = made["targets"].tolist(), made["weights"]
    assert not weights[np.isin(text, vocabulary.special_ids)].any()
    for word in words_of(kind, text):
        assert len(set(weights[word].tolist())) == 1
    if "count" not in options:
        most = max(1, round(rate * len(text))) if options["unit"] != "span" else math.ceil(rate * len(text))
        assert weights.sum() <= most
    np.testing.assert_array_equal(made["inputs"][weights == 0], made["targets"][weights == 0])


def test_whole_words_fill_what_bert_chooses_where_short_words_are_left():
    vocabulary = trained("word pieces")
    tokens = vocabulary.encode(" ".join(LINES))[:126]
    made = batch(bind(MaskedTokens(unit="word"), vocabulary), tokens, 300)
    assert (made["weights"].sum(-1) == 19).all()  # round(0.15 * 128)


def test_a_word_is_treated_as_one():
    vocabulary = trained("word pieces")
    tokens = vocabulary.encode(" ".join(LINES))[:126]
    made = {}
    for treat in ("span", "token"):
        objective = MaskedTokens(unit="word", treat=treat, mask=0.7, random=0.0)
        made[treat] = batch(bind(objective, vocabulary), tokens, 200)
    np.testing.assert_array_equal(made["span"]["weights"], made["token"]["weights"])
    words = words_of("word pieces", made["span"]["targets"][0].tolist())
    masked = {
        treat: [
            (one["inputs"][row, word] == vocabulary.mask_id).tolist()
            for row in range(200)
            for word in words
            if one["weights"][row, word[0]]
        ]
        for treat, one in made.items()
    }
    assert all(len(set(word)) == 1 for word in masked["span"])
    assert within(sum(word[0] for word in masked["span"]), len(masked["span"]), 0.7)
    assert any(len(set(word)) == 2 for word in masked["token"])


@pytest.mark.parametrize(
    ("usual", "said", "others"),
    [
        ({"unit": "ngram"}, {"longest": 3}, [{"longest": 4}, {"longest": 2}]),
        ({"unit": "span"}, {"longest": 10, "stop": 0.2}, [{"longest": 9}, {"stop": 0.25}]),
    ],
)
def test_n_grams_and_spans_have_the_published_laws_if_nothing_is_said(usual, said, others):
    """ALBERT's three words, SpanBERT's ten and its parameter 0.2."""
    text = np.array(trained("sentence pieces").encode(" ".join(LINES[:40])), np.int32)[:600]

    def made(**settings):
        return batch(bind(MaskedTokens(**usual, **settings), trained("sentence pieces")), text, 8)["weights"]

    np.testing.assert_array_equal(made(), made(**said))
    for other in others:
        assert (made() != made(**other)).any()


def test_spans_are_treated_as_one():
    text = np.arange(100) % 39 + 1
    made = {
        treat: batch(bind(MaskedTokens(unit="span", treat=treat), bert_like()), text, 300)
        for treat in ("token", "span")
    }

    def broken(one):
        """How often a chosen token is masked where the one before it, chosen too, is not."""
        masked, chosen = one["inputs"] == 42, one["weights"] == 1
        return (masked[:, 1:] & ~masked[:, :-1] & chosen[:, :-1]).sum() / (chosen[:, 1:] & chosen[:, :-1]).sum()

    assert broken(made["token"]) == pytest.approx(0.8 * 0.2, abs=0.03)
    assert broken(made["span"]) < 0.06  # where a span stands beside another


@pytest.mark.parametrize(
    "options",
    [{}, {"smoothing": 0.5, "counts": range(45)}, {"unit": "span", "treat": "span"}, *OPTIONS.values()],
)
def test_a_batch_equals_its_examples(options):
    bound = bind(MaskedTokens(rate=0.3, **options), bert_like())
    text = np.random.default_rng(0).integers(0, 45, (4, 40)).astype(np.int32)
    made = bound.batch(text, seed=2, epoch=4, indices=np.arange(4))
    for row in range(4):
        example = bound.example({"targets": text[row]}, corruption.example_rng(2, 4, row))
        for name in bound.names:
            np.testing.assert_array_equal(made[name][row], example[name])
            assert made[name].dtype == np.int32


# Smoothed frequencies.


def test_smoothing_chooses_rare_tokens_more_often():
    vocabulary = bert_like()
    counts = np.ones(45, int)
    counts[5], counts[6] = 10_000, 100
    text = np.repeat([5, 6, 7], 100)
    made = batch(bind(MaskedTokens(smoothing=0.5, counts=counts), vocabulary), text, 100)
    assert (made["weights"].sum(-1) == 46).all()  # ceil(0.15 * 302)
    often, seldom, rare = (made["weights"][made["targets"] == token].mean() for token in (5, 6, 7))
    # Chances are as 1 : 10 : 100 while few of the rare ones are taken; without replacement they come nearer.
    assert rare > 0.3
    assert 5 < rare / seldom < 10
    assert 5 < seldom / often < 20


def test_the_law_of_smoothing_for_one_token():
    rows = 3_000
    counts = np.ones(45, int)
    counts[5] = 16
    objective = MaskedTokens(smoothing=0.5, counts=counts, rate=0.2)
    made = batch(bind(objective, bert_like(), add_eos=False), [5, 6, 7, 8, 9], rows)
    assert (made["weights"].sum(-1) == 1).all()
    for place, rate in enumerate([0.25 / 4.25, *[1 / 4.25] * 4]):
        assert within(made["weights"][:, place].sum(), rows, rate)


def test_counts_of_a_file_of_an_array_and_of_the_split_are_the_same(tmp_path):
    vocabulary = bert_like()
    tokens = np.random.default_rng(0).integers(1, 41, 500).astype(np.int32)
    counts = np.bincount(tokens, minlength=45)
    np.save(tmp_path / "counts.npy", counts)
    np.savetxt(tmp_path / "counts.txt", counts, fmt="%d")
    learned = bind(MaskedTokens(smoothing=0.7), vocabulary).learn([tokens[:9], tokens[9:]])
    given = [counts, counts.tolist(), tmp_path / "counts.npy", str(tmp_path / "counts.txt")]
    expected = run(learned, tokens[:50])
    for one in given:
        bound = bind(MaskedTokens(smoothing=0.7, counts=one), vocabulary)
        assert not bound.corruption.learns
        assert bound.learn([tokens]) == bound
        np.testing.assert_array_equal(run(bound, tokens[:50])["inputs"], expected["inputs"])


def test_counts_that_cannot_be_used_are_refused(tmp_path):
    vocabulary = bert_like()
    with pytest.raises(ValueError, match="counts are of 3 ids but the vocabulary has 45"):
        bind(MaskedTokens(smoothing=0.5, counts=[1, 2, 3]), vocabulary)
    with pytest.raises(ValueError, match="smoothing needs counts"):
        run(bind(MaskedTokens(smoothing=0.5), vocabulary), [1, 2])
    (tmp_path / "words.txt").write_text("the 17\n")
    for name in ("words.txt", "gone.npy"):
        with pytest.raises(ValueError, match=f"{name}' is no array of one count per id"):
            bind(MaskedTokens(smoothing=0.5, counts=tmp_path / name), vocabulary)


# What does not work.


def test_masked_tokens_need_a_mask():
    with pytest.raises(ValueError, match="needs a vocabulary with a mask"):
        bind(MaskedTokens(), vocabularies.ByteVocabulary(mask=False), 16, 16)


def test_words_need_a_vocabulary_that_marks_them():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1, "[MASK]": 2}, []))
    tokenizer.add_special_tokens(["[MASK]"])
    vocabulary = vocabularies.TokenizerVocabulary(tokenizer.to_str())
    bind(MaskedTokens(), vocabulary)
    with pytest.raises(ValueError, match="whole words cannot be told"):
        bind(MaskedTokens(unit="word"), vocabulary)


@pytest.mark.parametrize(
    "field",
    [
        {"rate": 0.0}, {"mask": 0.95}, {"random": -0.1}, {"max_predictions": 0}, {"longest": 3},
        {"longest": 0, "unit": "span"}, {"stop": 1.0, "unit": "span"}, {"favor_longer": True, "unit": "span"},
        {"smoothing": 0.5, "unit": "word"}, {"counts": [1]}, {"mask": math.nan}, {"smoothing": math.inf},
    ],
)  # fmt: skip
def test_meaningless_settings_are_refused(field):
    with pytest.raises(ValueError, match=next(iter(field))):
        MaskedTokens(**field)


@pytest.mark.parametrize("field", ["unit", "treat", "count"])
def test_unknown_names_are_refused(field):
    with pytest.raises((ValueError, TypeError), match="other"):
        MaskedTokens(**{field: "other"})  # in tests the annotation refuses it first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"treat": "span"}, "treat='span' does not go with unit='token'"),
        ({"unit": "span", "count": "independent"}, "count='independent' does not go with unit='span'"),
        ({"smoothing": 0.5, "count": "independent"}, "smoothing needs a number of tokens"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MaskedTokens(**settings)


def test_one_class_under_its_former_names():
    assert denoisers.MaskedTokens is preprocessors.MaskedTokens is MaskedTokens
