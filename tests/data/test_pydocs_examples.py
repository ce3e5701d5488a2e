import collections
import doctest
import os
import subprocess
import sys

import pytest

from t2t.data import pydocs, pydocs_examples

LONG = "A sentence of the corpus with rather more words in it than a passage needs, for the net, the boat and the sea."


@pytest.fixture
def corpus(monkeypatch):
    """A corpus of three splits; the functions that remember the real one forget it before and after."""
    texts = {
        "train": [(f"Net {i} is in the sea and of use to us. {LONG}", "function", "boat.net") for i in range(60)]
        + [(f"Rudder {i} turns a boat to the left or right, as told. {LONG}", "class", "helm") for i in range(50)],
        "validation": [(f"Anchor {i} is let down by hand. {LONG}", "module", "boat") for i in range(20)],
        "test": [(f"Net {i} is in the sea and of use to us. {LONG}", "function", "boat") for i in range(55, 80)],
    }
    documents = {
        split: tuple(pydocs.Document(text=text, kind=kind, module=module) for text, kind, module in rows)
        for split, rows in texts.items()
    }
    remembered = [f for f in vars(pydocs_examples).values() if hasattr(f, "cache_clear")]
    for function in remembered:
        function.cache_clear()
    monkeypatch.setattr(pydocs, "split_documents", lambda split: documents[split])
    yield documents
    for function in remembered:
        function.cache_clear()


def test_prose_leaves_out_code_tables_and_headings():
    text = "Title\n=====\n\nRead a\nfile.\n\n>>> read()\n\n  x = {1: [2, 3]}\n\n+---+\n| a |\n\nThen close it."
    assert pydocs_examples.prose(text) == ["Read a file.", "Then close it."]


def test_sentences_end_at_stops_colons_and_semicolons():
    assert pydocs_examples.sentences("Do this: now; or e.g. later. Why?\n\nYes indeed!") == [
        "Do this:", "now;", "or e.g.", "later.", "Why?", "Yes indeed!",
    ]  # fmt: skip


def test_passages_close_at_a_size_and_are_cut_at_twice_of_it():
    pieces = ["aa bb.", "cc.", "dd.", "one two three four five six seven."]
    assert list(pydocs_examples.join_sentences(pieces, characters=8)) == ["aa bb. cc.", "dd. one two"]


@pytest.mark.parametrize(
    ("text", "name", "hidden"),
    [
        ("An email.message of Email, EmailMessage, emails", "email", "An ___.message of ___, ___Message, ___s"),
        ("io.StringIO in audio, an io stream, IOBase", "io", "___.StringIO in audio, an ___ stream, ___Base"),
        ("re.compile here and there, RE", "re", "___.compile here and there, ___"),
    ],
)
def test_names_are_hidden_without_tearing_up_words(text, name, hidden):
    assert pydocs_examples.hide_name(text, name=name) == hidden


def test_topics_join_docstrings_of_one_package_and_hide_its_name(corpus, monkeypatch):
    monkeypatch.setattr(pydocs_examples, "MIN_TOPIC_PASSAGES", 20)
    assert pydocs_examples.topics() == ("boat", "helm")
    examples = pydocs_examples.topic_examples("train")
    assert all(example.inputs.startswith("topic: ") for example in examples)
    assert collections.Counter(example.targets for example in examples) == {"boat": 30, "helm": 25}
    assert all("boat" not in example.inputs for example in examples if example.targets == "boat")
    assert all("boat" in example.inputs for example in examples if example.targets == "helm")
    assert {example.targets for example in pydocs_examples.topic_examples("validation")} == {"boat"}


def test_texts_of_an_earlier_split_are_not_held_out(corpus):
    train, test = (pydocs_examples.kind_examples(split) for split in ("train", "test"))
    assert len(test) == 20  # nets 60 to 79: 55 to 59 were trained on
    assert not {example.inputs for example in train} & {example.inputs for example in test}


def test_classes_are_capped(corpus, monkeypatch):
    monkeypatch.setattr(pydocs_examples, "MAX_KIND", 50)
    counts = collections.Counter(example.targets for example in pydocs_examples.kind_examples("train"))
    assert counts == {"function": 50, "class": 50}
    assert len(pydocs_examples.kind_examples("validation")) == 5  # 9.5 % of the cap, rounded to even


def test_cloze_takes_out_one_frequent_word_and_nearly_balances_them(corpus):
    examples = pydocs_examples.cloze_examples("train")
    assert all(example.inputs.count(pydocs_examples.GAP) == 1 for example in examples)
    assert all(example.targets in pydocs_examples.CLOZE_WORDS for example in examples)
    assert all(len(example.inputs.split()) <= 2 + 2 * pydocs_examples.CLOZE_CONTEXT for example in examples)
    by_word = collections.Counter(example.targets for example in examples if "use" in example.inputs)
    assert set(by_word) == {"is", "in", "and", "of", "to"} and max(by_word.values()) < 60 / 4
    restored = {e.inputs.removeprefix("cloze: ").replace(pydocs_examples.GAP, e.targets) for e in examples}
    assert "Net 7 is in the sea and of use to us." in restored


def test_summaries_are_first_lines(monkeypatch, corpus):
    text = f"Cast the net into the sea.\n\n{LONG}\n\n>>> cast()"
    monkeypatch.setattr(
        pydocs, "split_documents", lambda split: (pydocs.Document(text=text, kind="function", module="m"),)
    )
    assert pydocs_examples.summarize_examples("train") == (
        pydocs_examples.Example(inputs=f"summarize: {LONG}", targets="Cast the net into the sea."),
    )


def test_baselines():
    assert pydocs_examples.most_frequent(["b", "c", "b", "c", "a"]) == "b"
    assert pydocs_examples.first_words("summarize: one two three", words=2) == "one two"


def test_doctest_examples_hold():
    assert doctest.testmod(pydocs_examples).failed == 0


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="train, validation, test"):
        pydocs_examples.kind_examples("dev")


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(pydocs_examples.EXAMPLES))
def test_examples_of_this_interpreter(kind):
    train, validation, test = (pydocs_examples.EXAMPLES[kind](split) for split in pydocs.SPLITS)
    # Distributions leave out other parts of the standard library: 1,400 to 1,700 summaries have been seen.
    assert len(train) > 1000 and len(validation) > 50 and len(test) > 50
    texts = [{pydocs.normalise(example.inputs) for example in examples} for examples in (train, validation, test)]
    assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    assert [len(unique) for unique in texts] == [len(train), len(validation), len(test)]
    targets = [example.targets for example in validation]
    share = targets.count(pydocs_examples.most_frequent(e.targets for e in train)) / len(targets)
    assert share < {"topic": 0.14, "kind": 0.42, "cloze": 0.09, "summarize": 0.05}[kind]
    if kind == "topic":
        assert 15 <= len(pydocs_examples.topics()) <= 40
        assert not [e for e in train + test if len(e.targets) > 3 and e.targets in e.inputs.lower()]


@pytest.mark.slow
def test_examples_are_the_same_in_every_process():
    code = (
        "import hashlib; from t2t.data import pydocs_examples as p; print(hashlib.sha256(repr([f('validation') "
        "for f in p.EXAMPLES.values()]).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
