"""Special tokens around the texts of encoder-decoders."""

from hypothesis import given
from hypothesis import strategies as st

from t2t.vocabulary.frame import Frame

BART = Frame(bos_id=0, eos_id=2)
MBART = Frame(eos_id=2, language_ids=frozenset({50, 51}))


def test_without_special_tokens_nothing_changes():
    assert not Frame(eos_id=1)
    assert Frame(eos_id=1).fit([5, 6, 1]) == ([5, 6, 1], 0)


def test_bart_begins_every_text_once():
    assert BART
    assert BART.fit([5, 6, 2]) == BART.fit([0, 5, 6, 2]) == ([0, 5, 6, 2], 0)
    assert BART.fit([]) == ([0], 0)
    assert BART.start_id(2, usual=2) == 2


def test_mbart_puts_the_code_behind_the_end_and_starts_with_it():
    assert MBART.fit([5, 6, 51, 2]) == ([5, 6, 2, 51], 0)
    assert MBART.fit([5, 6, 2]) == ([5, 6, 2], 0)
    assert MBART.fit([51, 6, 2]) == ([51, 6, 2], 0)  # in the text it is no code of the text
    assert MBART.start_id(51, usual=None) == 51
    assert MBART.start_id(2, usual=0) == 0


tokens = st.lists(st.integers(3, 40), max_size=20)


@given(tokens, st.booleans(), st.sampled_from([None, 50, 51]), st.integers(1, 25), st.sampled_from([BART, MBART]))
def test_only_the_text_is_cut(text, ends, code, limit, frame):
    given_tokens = [*text, *([code] if code and frame is MBART else []), *([2] if ends else [])]
    whole, none = frame.fit(given_tokens)
    assert none == 0 and len(whole) == len(given_tokens) + (frame is BART)
    fitted, cut = frame.fit(given_tokens, limit=limit)
    assert len(fitted) == min(limit, len(whole))
    around = len(whole) - len(text)
    if limit >= around:
        assert len(whole) - cut == len(fitted)
        assert [t for t in fitted if 3 <= t <= 40] == text[: len(text) - cut]
        assert [t for t in fitted if not 3 <= t <= 40] == [t for t in whole if not 3 <= t <= 40]
