import pytest

from t2t.data.written_texts import Summary, Translation
from t2t.errors import UsageError


def test_translations_of_both_shapes():
    asked = [{"inputs": "translate German to English: Das ist gut.", "targets": "That is good."}]
    made = Translation(source="de", target="en")
    texts = {"en": "That is good.", "de": "Das ist gut."}
    assert made(texts, "train") == made({"translation": texts}, "train") == asked


def test_a_language_without_a_name_is_refused():
    with pytest.raises(ValueError, match="language 'xx' has no name here; known are ar, cs"):
        Translation(source="xx", target="en")


def test_of_several_summaries_the_first_is_learned():
    row = {"source": ["One.", "Two."], "target": ["a", "b"]}
    assert Summary(text="source", summary="target")(row, "train") == [
        {"inputs": "summarize: One. Two.", "targets": "a"}
    ]
    with pytest.raises(UsageError, match="target is an empty list"):
        Summary(text="source", summary="target")({**row, "target": []}, "train")
