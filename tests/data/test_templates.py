"""Instructions: literal prompts, all prompts there can be by enumeration, their frequencies, and tasks made of them."""

import collections
import itertools
import math

import hypothesis
import pytest
from hypothesis import strategies as st

seqio = pytest.importorskip("seqio")

from t2t.data import cache, examples, registry, templates, texts  # noqa: E402
from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.data.templates import Prompts, Template  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

ROWS = tuple({"text": text, "mood": mood} for text, mood in (("Alas.", "sad"), ("Hurrah!", "glad"), ("Oh no.", "sad")))
ASK = Template(inputs="{text}\nThe mood?\n{options}", targets="{mood}")
CUE = Template(inputs="Read: {text}", targets="{mood}", between="\nMood: ", separator="\n\n")
PLAIN = Template(inputs="mood of {text}", targets="{mood}")


def dataset(rows):
    return tf.data.Dataset.from_tensor_slices({name: [row[name] for row in rows] for name in rows[0]})


def read(prompts, rows=ROWS):
    made = [(row["inputs"].decode(), row["targets"].decode()) for row in prompts(dataset(rows)).as_numpy_iterator()]
    return made


# One template.


def test_a_question_alone():
    options = templates.options_block(("sad", "glad"))
    assert ASK.prompt({**ROWS[0], "options": options}) == "Alas.\nThe mood?\nOPTIONS:\n- sad\n- glad"
    assert CUE.prompt(ROWS[0]) == "Read: Alas.\nMood:"
    assert CUE.answer(ROWS[0]) == "sad"


def test_solved_examples_stand_before_the_question():
    assert CUE.prompt(ROWS[2], ROWS[:2]) == "Read: Alas.\nMood: sad\n\nRead: Hurrah!\nMood: glad\n\nRead: Oh no.\nMood:"
    assert PLAIN.prompt(ROWS[2], ROWS[:1]) == "mood of Alas.\nsad\n\n\nmood of Oh no."


def test_a_template_turned_around():
    back = CUE.inverted()
    assert (back.prompt(ROWS[1]), back.answer(ROWS[1])) == ("glad\nMood:", "Read: Hurrah!")
    assert back.inverted() == CUE


def test_fields_and_braces():
    assert ASK.fields == ("mood", "options", "text")
    code = Template(inputs="{{ {text} }}", targets="{{}}")
    assert (code.prompt(ROWS[0]), code.answer(ROWS[0]), code.fields) == ("{ Alas. }", "{}", ("text",))


@hypothesis.given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_stands_in_its_prompt_as_it_is(text, mood):
    row = {"text": text, "mood": mood}
    assert PLAIN.prompt(row) == f"mood of {text}"
    assert PLAIN.prompt(ROWS[0], [row]) == f"mood of {text}\n{mood}\n\n\nmood of Alas."


@pytest.mark.parametrize("inputs", ["{text", "{0}", "{}", "{text.upper}", "{text[0]}", "{text:>9}", "{text!r}", "}"])
def test_other_braces_are_refused(inputs):
    with pytest.raises(ValueError, match="template"):
        Template(inputs=inputs)


# Choices.


def test_every_possible_prompt_comes_and_no_other():
    """Two wordings, and ordered pairs of the two or three other rows."""
    rows = (*ROWS, {"text": "Well...", "mood": "glad"})
    prompts = Prompts(templates=(CUE, PLAIN), shots=2, solved=lambda: rows)
    for row in rows:
        others = [one for one in rows if one != row]
        possible = {
            (template.prompt(row, pair), row["mood"])
            for template in (CUE, PLAIN)
            for pair in itertools.permutations(others, 2)
        }
        assert {prompts.example(row, index=index) for index in range(300)} == possible


def test_frequencies():
    """Wordings are equally likely, and so are the other rows as solved examples."""
    prompts = Prompts(
        templates=(CUE, PLAIN, Template(inputs="{text}?", targets="{mood}")), shots=1, solved=lambda: ROWS * 2
    )
    number = 1500
    made = collections.Counter(prompts.example(ROWS[0], index=index)[0] for index in range(number))
    expected = 1 / (3 * 2)
    assert len(made) == 6
    for count in made.values():
        assert abs(count - number * expected) < 4 * math.sqrt(number * expected * (1 - expected))


def test_choices_are_a_function_of_seed_copy_and_index():
    def made(seed, index, copy):
        return Prompts(templates=(CUE, PLAIN), shots=2, solved=lambda: ROWS, seed=seed, copies=9).example(
            ROWS[0], index=index, copy=copy
        )

    places = list(itertools.product(range(3), range(4), range(3)))
    first, again = ([made(*place) for place in places] for _ in range(2))
    assert first == again
    for axis in range(3):
        varied = [made(*(value if i == axis else 0 for i in range(3))) for value in range(9)]
        assert len(set(varied)) > 1, axis


@pytest.mark.parametrize("copies", [1, 3, 5])
def test_copies_of_a_row_take_different_templates_while_there_are_any(copies):
    wordings = tuple(Template(inputs=f"{{text}} {i}", targets="{mood}") for i in range(3))
    made = read(Prompts(templates=wordings, copies=copies))
    assert len(made) == copies * len(ROWS)
    for place, row in enumerate(ROWS):
        mine = [prompt for prompt, _ in made[place * copies : (place + 1) * copies]]
        assert all(prompt.startswith(row["text"]) for prompt in mine)
        assert len(set(mine[:3])) == min(copies, 3)
        assert len(set(mine[3:])) == max(copies - 3, 0)


def test_long_solved_examples_are_left_out_and_the_question_stays_whole():
    rows = tuple({"text": "x" * length, "mood": "glad"} for length in (10, 20, 30, 40))
    for limit in (1, 60, 90, 500):
        prompts = Prompts(templates=(PLAIN,), shots=3, solved=lambda: rows, max_characters=limit)
        for index, row in enumerate(rows):
            prompt, _ = prompts.example(row, index=index)
            assert prompt.endswith(PLAIN.prompt(row))
            assert len(prompt) <= max(limit, len(PLAIN.prompt(row)))
            whole, _ = Prompts(templates=(PLAIN,), shots=3, solved=lambda: rows).example(row, index=index)
            assert whole.endswith(prompt)
            assert limit < 500 or prompt == whole


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"templates": ()}, "templates is empty"),
        ({"templates": (PLAIN,), "copies": 0}, "copies=0 must be positive"),
        ({"templates": (PLAIN,), "shots": -1}, "shots=-1 not negative"),
        ({"templates": (PLAIN,), "shots": 2}, "shots=2 needs solved"),
        ({"templates": (PLAIN,), "options": "sad"}, "must be several texts"),
        ({"templates": (PLAIN,), "max_characters": 0}, "max_characters=0"),
    ],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Prompts(**settings)


# Data sets and tasks.


def test_unknown_fields_are_named_with_what_there_is():
    with pytest.raises(ValueError, match=r"Template\(inputs='of \{author\}'.* reads the field 'author', .* mood, text"):
        read(Prompts(templates=(PLAIN, Template(inputs="of {author}", targets="{mood}"))))
    with pytest.raises(ValueError, match=r"the field 'options', but rows have mood, text; options=\.\.\. gives it"):
        read(Prompts(templates=(ASK,)))
    with pytest.raises(ValueError, match="rows have a field 'options'"):
        read(Prompts(templates=(ASK,), options=("sad",)), [{**ROWS[0], "options": "a"}])
    with pytest.raises(ValueError, match=r"reads the field 'mood', but rows have text"):
        read(Prompts(templates=(PLAIN,), shots=1, solved=lambda: [{"text": "a"}, {"text": "b"}]))


def test_more_solved_examples_than_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"shots=3 .* there are 3"):
        read(Prompts(templates=(PLAIN,), shots=3, solved=lambda: ROWS * 2))
    with pytest.raises(ValueError, match=r"shots=1 .* there are 0"):
        read(Prompts(templates=(PLAIN,), shots=1, solved=tuple))
    assert len(read(Prompts(templates=(PLAIN,), shots=2, solved=lambda: ROWS))) == 3


def test_numbers_and_rows_of_any_source():
    def numbers(split, shuffle_files=False, seed=None):
        del split, shuffle_files, seed
        return tf.data.Dataset.from_tensor_slices({"a": [3, 4], "b": [b"x", "é".encode()], "long": [[1, 2], [3, 4]]})

    source = seqio.FunctionDataSource(numbers, ["train"])
    rows = templates.SourceRows(source=source)()
    assert rows == ({"a": "3", "b": "x"}, {"a": "4", "b": "é"})
    assert templates.SourceRows(source=source, limit=1)() == rows[:1]
    prompts = Prompts(templates=(Template(inputs="{a}+1", targets="{b}"),), shots=1, solved=lambda: rows)
    made = prompts(numbers("train"))
    assert [row["inputs"].decode() for row in made.as_numpy_iterator()] == [
        "4+1\né\n\n\n3+1",
        "3+1\nx\n\n\n4+1",
    ]


@pytest.fixture
def names():
    source = registry.TextSource(lambda split: list(ROWS), splits=("train", "validation"))
    names = templates.add_templates(
        "moods",
        source,
        templates=(ASK, CUE),
        inverted=(PLAIN.inverted(),),
        options=lambda: ("sad", "glad"),
        copies=2,
        metric_fns=[_metric],
    )
    yield names
    for name in names:
        seqio.TaskRegistry.remove(name)


def test_tasks_for_both_kinds_of_prompt_and_for_inverted_ones(names):
    assert names == ("moods_zero_shot", "moods_few_shot", "moods_inverted")
    assert [seqio.TaskRegistry.get(name).metric_fns for name in names] == [[_metric], [_metric], []]
    vocabulary = ByteVocabulary()
    for name, solved in (("moods_few_shot", 2), ("moods_inverted", 0)):
        task = examples.load_examples(
            name, "validation", vocabulary=vocabulary, lengths={"inputs": 200, "targets": 20}, seed=0, texts=True
        )
        assert len(task) == 6
        inputs = [vocabulary.decode(task.example(i, epoch=0)["inputs"]) for i in range(6)]
        assert inputs == task.store.texts["inputs_pretokenized"]
        if name != "moods_inverted":
            assert {prompt.count("mood?") + prompt.count("Mood:") for prompt in inputs} == {1 + solved}
            assert sorted(task.store.texts["targets_pretokenized"]) == ["glad"] * 2 + ["sad"] * 4
        else:
            assert task.store.texts["targets_pretokenized"][:2] == ["mood of Alas."] * 2
            assert inputs[0] == "sad"


def test_vocabularies_are_trained_on_all_fields(names):
    assert set(texts.raw_texts(names[0])) == {"Alas.", "Hurrah!", "Oh no.", "sad", "glad"}


def test_cached_tokens_are_known_by_templates_and_options(names):
    def name_of(**settings):
        source = registry.TextSource(_rows, splits=("train",))
        (name, *_) = templates.add_templates("moods_cached", source, **{"templates": (PLAIN,), **settings})
        task = seqio.TaskRegistry.get(name)
        for other in ("moods_cached_zero_shot", "moods_cached_few_shot"):
            seqio.TaskRegistry.remove(other)
        from t2t.data import vocabularies

        return cache.cache_name(vocabularies.bind_vocabulary(task, ByteVocabulary()), "train", {"inputs": 9})

    made = [name_of(), name_of(), name_of(templates=(CUE,)), name_of(options=_rows), name_of(seed=1)]
    assert made[0] == made[1]
    assert len(set(made)) == 4


def _rows(split):
    return list(ROWS)


def _metric(targets, predictions):
    return {"right": float(targets == predictions)}
