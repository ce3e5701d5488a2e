import pydoc_data.topics

import pytest
from sentencepiece import sentencepiece_model_pb2

from t2t import vocabulary as vocabularies

LINES = tuple("\n".join(text for _, text in sorted(pydoc_data.topics.topics.items())[:12]).splitlines())


@pytest.fixture(scope="module")
def trained() -> vocabularies.SentencePieceVocabulary:
    return vocabularies.train_sentencepiece(LINES, size=600)


def test_layout(trained):
    assert (trained.pad_id, trained.eos_id, trained.unk_id, trained.bos_id) == (0, 1, 2, None)
    assert trained.size == 600
    assert trained.sentinels == tuple(range(599, 499, -1))
    assert trained.mask_id == 499
    assert trained.special_ids == (0, 1, 2, *range(499, 600))


def test_the_same_lines_give_the_same_bytes(trained):
    assert vocabularies.train_sentencepiece(iter(LINES), size=600).model == trained.model


def test_mask_and_sentinels_in_text(trained):
    paris = trained.encode("Paris is the <mask> of France.")
    assert paris.count(499) == 1
    assert trained.decode(paris) == "Paris is the <mask> of France."
    # The mask stands for a whole word: no space of its own is left before it.
    assert paris == [*trained.encode("Paris is the"), 499, *trained.encode("of France.")]
    assert trained.encode("x<mask> y") == [*trained.encode("x"), 499, *trained.encode("y")]
    assert trained.encode("<extra_id_0>s<extra_id_1>") == [599, trained.pieces().index("s"), 598]


def test_a_file_opened_by_other_programs_gives_the_same_ids(trained, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    trained.save(tmp_path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sentencepiece.model"))
    for line in (*LINES[:200], "a <mask> b", "and <extra_id_0> s"):
        assert processor.encode(line) == trained.encode(line)


def test_byte_pairs_and_byte_fallback():
    vocabulary = vocabularies.train_sentencepiece(
        LINES, size=700, sentinels=10, mask=False, model_type="bpe", byte_fallback=True
    )
    assert (vocabulary.size, vocabulary.mask_id, len(vocabulary.sentinels)) == (700, None, 10)
    assert vocabulary.decode(vocabulary.encode("日本 def")) == "日本 def"
    assert vocabulary.unk_id not in vocabulary.encode("日本")


def test_names_of_specials_in_the_text_do_no_harm():
    vocabulary = vocabularies.train_sentencepiece(["<mask> <extra_id_0> <pad> mask extra"] * 50, size=120)
    assert (vocabulary.mask_id, vocabulary.sentinels[0]) == (19, 119)
    assert vocabulary.encode("<mask>") == [19]


def test_too_large_sizes_say_what_is_possible():
    with pytest.raises(ValueError, match=r"size=1000 is too large .* largest possible is (\d+)") as error:
        vocabularies.train_sentencepiece(["abc abd"], size=1000)
    largest = int(str(error.value).split("possible is ")[1].split()[0])
    assert vocabularies.train_sentencepiece(["abc abd"], size=largest).size == largest


def test_too_small_sizes_say_what_is_needed():
    with pytest.raises(ValueError, match="size=110 is too small .* need") as error:
        vocabularies.train_sentencepiece(LINES, size=110)
    needed = int(str(error.value).split("need ")[1].split()[0])
    assert vocabularies.train_sentencepiece(LINES, size=needed).size == needed
    with pytest.raises(ValueError, match="size=100 must exceed the 101 sentinels and mask"):
        vocabularies.train_sentencepiece(LINES, size=100)


def test_no_text_is_refused():
    for lines in ([], ["", " "]):
        with pytest.raises(ValueError, match="no text"):
            vocabularies.train_sentencepiece(lines, size=200)


def test_training_is_silent(capfd):
    vocabularies.train_sentencepiece(LINES[:300], size=250)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sentinels": -5}, "sentinels=-5"),
        ({"character_coverage": 0.5}, r"character_coverage=0.5: give a fraction in \[0.98, 1\]"),
        ({"character_coverage": float("nan")}, "character_coverage=nan"),
        ({"size": 10**11}, "size=100000000000"),
        ({"framed": True, "mask": False}, r"mask=False: a framed vocabulary always has \[MASK\]"),
        ({"framed": True, "modes": True}, "modes=True: a framed vocabulary has no mode tokens"),
        ({"lowercase": False}, "lowercase=False: only a framed vocabulary"),
        ({"framed": True, "size": 5}, r"size=5 must exceed .* the 5 ids pad, unk, \[CLS\], \[SEP\], \[MASK\]"),
    ],
)
def test_settings_that_sentencepiece_does_not_have_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        vocabularies.train_sentencepiece(["some text"], **{"size": 200, **settings})


@pytest.fixture(scope="module")
def with_modes() -> vocabularies.SentencePieceVocabulary:
    return vocabularies.train_sentencepiece(LINES, size=800, sentinels=300, modes=True)


def test_mode_tokens_stand_below_the_mask(with_modes, trained):
    assert (with_modes.size, len(with_modes.sentinels), with_modes.mask_id) == (800, 300, 499)
    assert with_modes.modes == {"[NLU]": 496, "[NLG]": 497, "[S2S]": 498}
    assert set(with_modes.modes.values()) <= set(with_modes.special_ids)
    assert trained.modes == {}


def test_mode_tokens_in_text_are_never_split(with_modes, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    the = with_modes.encode("the")
    for mode, token in with_modes.modes.items():
        assert with_modes.encode(f"{mode} the") == [token, *the]
        assert with_modes.encode(f"the {mode}") == with_modes.encode(f"the{mode}") == [*the, token]
        assert with_modes.decode([token, *the]) == f"{mode} the"
    with_modes.save(tmp_path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sentencepiece.model"))
    assert processor.encode("[NLG] the") == [497, *the]
    assert vocabularies.Vocabulary.load(tmp_path).modes == with_modes.modes
    assert not set(with_modes.encode("[NLI] a[0] [nlu] NLU")) & set(with_modes.modes.values())


def test_sizes_with_modes_count_them():
    with pytest.raises(ValueError, match="size=100 must exceed the 104 sentinels, mask and mode tokens"):
        vocabularies.train_sentencepiece(LINES, size=100, modes=True)
    with pytest.raises(ValueError, match=r"pieces and 104 sentinels, mask and mode tokens\)"):
        vocabularies.train_sentencepiece(["abc abd"], size=1000, modes=True)


@pytest.fixture(scope="module")
def framed() -> vocabularies.SentencePieceVocabulary:
    return vocabularies.train_sentencepiece(LINES, size=400, framed=True)


def test_what_stands_around_texts_are_control_symbols(framed, tmp_path):
    """ALBERT's class of transformers 5 cannot read a model without these pieces; its own has them so."""
    assert (framed.size, framed.sentinels) == (400, ())
    assert [framed.pad_id, framed.unk_id, framed.bos_id, framed.eos_id, framed.mask_id] == [0, 1, 2, 3, 4]
    assert framed.special_ids == (0, 1, 2, 3, 4)
    pieces = sentencepiece_model_pb2.ModelProto.FromString(framed.model).pieces
    assert [piece.piece for piece in pieces[:5]] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    kinds = type(pieces[0])
    assert [pieces[i].type for i in (0, 2, 3, 4)] == 4 * [kinds.CONTROL]
    assert framed.encode("The [MASK] Naïve ``one''") == framed.encode('the [MASK] naive "one"')
    assert framed.encode("the[MASK]").count(4) == 1
    (tmp_path / "spiece.model").write_bytes(framed.model)  # as its readers know it, by the pieces alone
    framed.save(tmp_path / "saved")
    for again in (tmp_path, tmp_path / "saved"):
        assert vocabularies.Vocabulary.load(again).encode_batch(LINES[:99]) == framed.encode_batch(LINES[:99])


def test_a_framed_vocabulary_may_know_capitals():
    cased = vocabularies.train_sentencepiece(LINES, size=450, framed=True, lowercase=False, sentinels=7)
    assert len(cased.sentinels) == 7 and cased.sentinels[0] == 449
    assert cased.decode(cased.encode("The Étude")) == "The Etude"
