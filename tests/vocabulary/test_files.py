import json
import shutil

import pytest
from sentencepiece import sentencepiece_model_pb2

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


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_repository_of_bytes_needs_no_file_either(tmp_path, file):
    """ByT5's name their class alone."""
    (tmp_path / "config.json").write_text("{}")
    assert not files.holds(tmp_path)
    (tmp_path / file).write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer"}))
    assert files.holds(tmp_path)
    expected = vocabularies.ByteVocabulary(sentinels=125, mask=False, ascending=True)
    assert vocabularies.Vocabulary.load(tmp_path) == expected
    expected.save(tmp_path / "ours")
    assert vocabularies.Vocabulary.load(tmp_path / "ours") == expected
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer", "extra_ids": 4}))
    assert vocabularies.Vocabulary.load(tmp_path).size == 263
    (tmp_path / "added_tokens.json").write_text('{"<new>": 263}')
    with pytest.raises(ValueError, match=f"{tmp_path} cannot be read as a vocabulary: tokens were added .*: <new>"):
        vocabularies.Vocabulary.load(tmp_path)


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


def test_tokens_added_to_a_t5_are_kept_and_move_no_sentinel(tmp_path):
    """They stand in tokenizer.json alone, or beside the SentencePiece model, which does not hold them."""
    (model, definition) = tokenizer_files("t5", "spiece.model", "tokenizer.json")
    shutil.copy(model, tmp_path)
    grown = json.loads(definition.read_text(encoding="utf-8"))
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    grown["added_tokens"] += [{"id": 32100 + i, "content": name, **token} for i, name in enumerate(("<new>", "<own>"))]
    (tmp_path / "tokenizer.json").write_text(json.dumps(grown), encoding="utf-8")
    loaded = vocabularies.Vocabulary.load(tmp_path)
    assert (loaded.size, loaded.encode("<own>"), loaded.sentinels[0]) == (32102, [32101], 32099)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "added_tokens.json").write_text('{"<new>": 32100, "<extra_id_0>": 32099}')
    with pytest.raises(ValueError, match=r"tokens were added .*: <new>. Put the tokenizer.json"):
        vocabularies.Vocabulary.load(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<extra_id_0>": 32099}')
    assert vocabularies.Vocabulary.load(tmp_path).size == 32100
    listed = {"added_tokens_decoder": {"0": {"content": "<pad>"}, "32100": {"content": "<own>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(listed))
    with pytest.raises(ValueError, match="tokens were added .*: <own>"):
        vocabularies.Vocabulary.load(tmp_path)


@pytest.mark.parametrize("number", [0, 7])
def test_the_number_of_sentinels_is_that_of_the_configuration(tmp_path, number):
    """T5's tokenizer adds as many as `extra_ids` says (google-research/multilingual-t5#24)."""
    (model,) = tokenizer_files("t5", "spiece.model")
    shutil.copy(model, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_ids": number}))
    assert len(vocabularies.Vocabulary.load(tmp_path).sentinels) == number


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
    for file in tokenizer_files("t5", "spiece.model", "tokenizer.json"):
        shutil.copy(file, tmp_path)
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


SOME = {"vocab.txt": "[UNK]\n[PAD]\na\n", "vocab.json": '{"<unk>": 0, "a": 1}', "merges.txt": "#version: 0.2\n"}
"""Files of tiny vocabularies."""
ADDED = ("added_tokens.json", "vocab.txt")
SAID = ("tokenizer_config.json", "vocab.txt")
DAMAGED = [
    *((*beside, "[]", "holds a list; expected is a JSON object") for beside in (ADDED, SAID)),
    ("special_tokens_map.json", "vocab.txt", "[]", "holds a list; expected is a JSON object"),
    ("vocab.json", "merges.txt", "[]", "holds a list; expected is a JSON object"),
    ("tokenizer.json", "", "[]", "cannot be read as a vocabulary"),
    ("tokenizer.json", "", "{}", "cannot be read as a vocabulary"),
    ("vocabulary.json", "", "[]", "holds a list; expected is a JSON object"),
    ("vocabulary.json", "", '{"kind": "bytes", "sentinels": "7"}', "cannot be read as a vocabulary"),
    ("vocabulary.json", "", '{"kind": "bytes", "sentinels": 1000000000000}', "sentinels=1000000000000 is too many"),
    ("vocabulary.json", "", '{"kind": "bytes", "start_id": "x"}', "cannot be read as a vocabulary"),
    (*ADDED, '{"<new>": "x"}', "gives '<new>' the id \"x\"; ids are integers"),
    (*ADDED, '{"<new>": 100000000000000}', "gives '<new>' the id 100000000000000; ids are integers"),
    (*SAID, '{"do_lower_case": 7}', "says do_lower_case: 7; expected is true or false or null"),
    (*SAID, '{"tokenizer_class": 5}', "says tokenizer_class: 5; expected is a string or null"),
    (*SAID, '{"mask_token": []}', r"says mask_token: \[\]; expected is a string or an object or null"),
    (*SAID, '{"mask_token": {"text": "x"}}', "says content of mask_token: null; expected is a string"),
    (*SAID, '{"additional_special_tokens": [5]}', "says additional_special_tokens: 5; expected is a string"),
    (*SAID, '{"added_tokens_decoder": {"1": 5}}', "says added_tokens_decoder: 5; expected is a string"),
    (*SAID, '{"extra_ids": -1}', "says extra_ids: -1; possible are 0"),
    (*SAID, '{"extra_ids": 1e3}', "says extra_ids: 1000.0; expected is an integer"),
    ("vocab.json", "merges.txt", '{"<unk>": 0, "a": 1000000000000}', "gives 'a' the id 1000000000000"),
    ("merges.txt", "vocab.json", "a b c\n", "has the line 'a b c'; expected are two pieces"),
    ("merges.txt", "vocab.json", "x y\n", "has the line 'x y'; expected are two pieces"),
    ("spiece.model", "", "version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
]


@pytest.mark.parametrize(("name", "beside", "content", "message"), DAMAGED)
def test_files_that_hold_something_else_are_named(tmp_path, name, beside, content, message):
    if beside:
        (tmp_path / beside).write_text(SOME[beside])
        SOME.get(name) and (tmp_path / name).write_text(SOME[name])
        vocabularies.Vocabulary.load(tmp_path) if name != "vocab.json" else None
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message) as raised:
        vocabularies.Vocabulary.load(tmp_path)
    assert name in str(raised.value)


@pytest.mark.parametrize("content", ['{"added_tokens": 5}', '{"added_tokens": [5]}', '{"added_tokens": [{}]}', "[]"])
def test_a_tokenizer_json_beside_a_model_is_named_too(tmp_path, content):
    model = sentencepiece_model_pb2.ModelProto()
    for kind, names in ((3, ("<pad>", "</s>")), (2, ("<unk>",)), (1, ("▁", "a"))):  # control, unknown, normal
        for name in names:
            model.pieces.add(piece=name, score=-1.0, type=kind)
    (tmp_path / "spiece.model").write_bytes(model.SerializeToString())
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer.json .*(expected is|ids are integers)"):
        vocabularies.Vocabulary.load(tmp_path)


def test_a_config_json_beside_a_model_is_named_too(tmp_path):
    model = shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model")
    shutil.copy(model, tmp_path / "sentencepiece.bpe.model")
    for content, message in (("[]", "holds a list"), ('{"vocab_size": "x"}', 'says vocab_size: "x"; expected is')):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(ValueError, match=f"config.json {message}"):
            vocabularies.Vocabulary.load(tmp_path)


def test_a_link_that_leads_nowhere_is_no_missing_vocabulary(tmp_path):
    (tmp_path / "vocab.txt").symlink_to("blobs/1234")
    assert files.holds(tmp_path)
    for path in (tmp_path, tmp_path / "vocab.txt"):
        with pytest.raises(FileNotFoundError, match="vocab.txt is a link to blobs/1234, which is not there"):
            vocabularies.Vocabulary.load(path)


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
