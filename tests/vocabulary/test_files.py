import json
import shutil

import pytest

from t2t import vocabulary as vocabularies
from t2t.vocabulary import files
from tests.shared_data import shared_data

TEXT = "Hello  wörld, a <extra_id_0> <mask>."


def tokenizer_files(name, *wanted):
    return [shared_data("tokenizers", name, file) for file in wanted]


@pytest.mark.parametrize(
    "path",
    [
        "t5/spiece.model",
        "t5/tokenizer.json",
        "gpt2/vocab.json",
        "gpt2/merges.txt",
        "bert-base-cased/vocab.txt",
        "albert",
    ],
)
def test_saved_vocabularies_load_again(path, tmp_path):
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", *path.split("/")))
    vocabulary.save(tmp_path / "made" / "on the way")
    again = vocabularies.Vocabulary.load(tmp_path / "made" / "on the way")
    assert again == vocabulary
    assert type(again) is type(vocabulary)
    assert again.encode(TEXT) == vocabulary.encode(TEXT)
    assert again == vocabularies.Vocabulary.load(tmp_path / "made" / "on the way" / "vocabulary.json")


def test_bytes_need_no_file(tmp_path):
    vocabulary = vocabularies.ByteVocabulary(sentinels=5, mask=False)
    vocabulary.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vocabulary.json"]
    assert vocabularies.Vocabulary.load(tmp_path) == vocabulary


def test_a_hugging_face_directory(tmp_path):
    """T5's has both files: SentencePiece is the truth, its tokenizer.json puts a space after sentinels."""
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "t5"))
    assert isinstance(vocabulary, vocabularies.SentencePieceVocabulary)
    (source,) = tokenizer_files("bert-base-cased", "vocab.txt")
    vocabularies_json = vocabularies.Vocabulary.load(source)
    (tmp_path / "tokenizer.json").write_text(vocabularies_json.definition, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"mask_token": {"content": "[unused5]"}, "pad_token": None})
    )
    loaded = vocabularies.Vocabulary.load(tmp_path)
    assert loaded.pieces()[loaded.mask_id] == "[unused5]"
    assert loaded.pad_id == 0


@pytest.mark.parametrize("name", files.FILES)
def test_a_directory_holds_what_would_be_loaded(tmp_path, name):
    assert not files.holds(tmp_path)
    (tmp_path / name).touch()
    assert files.holds(tmp_path) == (name != "vocab.json")
    (tmp_path / "merges.txt").touch()
    assert files.holds(tmp_path)


def test_the_most_complete_files_are_loaded(tmp_path):
    (source,) = tokenizer_files("bert-base-cased", "vocab.txt")
    shutil.copy(source, tmp_path / "vocab.txt")
    (tmp_path / "vocab.json").write_text("{}")  # without its merges no vocabulary
    wordpiece = vocabularies.Vocabulary.load(tmp_path)
    assert wordpiece.size == 28996
    for file in tokenizer_files("gpt2", "vocab.json", "merges.txt"):
        shutil.copy(file, tmp_path)
    bpe = vocabularies.Vocabulary.load(tmp_path)
    assert bpe.size == 50257
    (tmp_path / "tokenizer.json").write_text(wordpiece.definition, encoding="utf-8")
    assert vocabularies.Vocabulary.load(tmp_path) == wordpiece
    (spm,) = tokenizer_files("t5", "spiece.model")
    shutil.copy(spm, tmp_path)
    assert isinstance(vocabularies.Vocabulary.load(tmp_path), vocabularies.SentencePieceVocabulary)
    vocabularies.ByteVocabulary().save(tmp_path)
    assert vocabularies.Vocabulary.load(tmp_path) == vocabularies.ByteVocabulary()


def test_lower_case_is_read_from_the_configuration_or_the_pieces(tmp_path):
    (source,) = tokenizer_files("bert-base-cased", "vocab.txt")
    shutil.copy(source, tmp_path / "vocab.txt")
    cased = vocabularies.Vocabulary.load(tmp_path)
    assert cased.encode("Hello") != cased.encode("hello")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert vocabularies.Vocabulary.load(tmp_path).encode("Hello") == cased.encode("hello")
    uncased = vocabularies.Vocabulary.load(shared_data("tokenizers", "bert-base-uncased"))
    assert uncased.encode("Hello") == uncased.encode("hello")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        vocabularies.Vocabulary.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"holds no vocabulary; looked for .*spiece.model"):
        vocabularies.Vocabulary.load(tmp_path)
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="vocab.json needs merges.txt beside it"):
        vocabularies.Vocabulary.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="merges.txt is missing"):
        vocabularies.Vocabulary.load(tmp_path / "vocab.json")


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    vocabularies.ByteVocabulary().save(tmp_path)
    config = json.loads((tmp_path / "vocabulary.json").read_text())
    (tmp_path / "vocabulary.json").write_text(json.dumps({**config, "size": 7}))
    with pytest.raises(ValueError, match="says 7 ids but its files hold 360"):
        vocabularies.Vocabulary.load(tmp_path)
    (tmp_path / "vocabulary.json").write_text('{"kind": "runes"}')
    with pytest.raises(ValueError, match="kind 'runes'; possible are"):
        vocabularies.Vocabulary.load(tmp_path)
    (tmp_path / "notes.txt").write_text("no vocabulary")
    with pytest.raises(ValueError, match="no token for unknown words"):
        vocabularies.Vocabulary.load(tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocabulary.json", "{"),
        ("vocabulary.json", '{"kind": "bytes", "sentinles": 3}'),
        ("tokenizer.json", "{"),
        ("tokenizer.json", "{}"),
        ("spiece.model", "no model"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=f"{tmp_path / name} cannot be read as a vocabulary: "):
        vocabularies.Vocabulary.load(tmp_path)
