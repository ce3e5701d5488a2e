"""`t2t.load`: what config.json may hold besides, and models whose vocabulary is not understood."""

import json
import logging

import pytest

import t2t
from t2t import cli
from t2t import vocabulary as vocabularies
from t2t.errors import UsageError
from t2t.families import t5
from t2t.hf import export
from tests.hf import tiny

BYTES = vocabularies.ByteVocabulary(sentinels=125, mask=False, ascending=True)
MODEL = t5.t5(num_layers=1, d_model=12, num_heads=3, head_dim=5, d_ff=7, vocab_size=384)


@pytest.fixture
def theirs(tmp_path):
    export.export(tmp_path / "theirs", config=MODEL, params=tiny.params(MODEL))
    return tmp_path / "theirs"


def change(directory, **attributes):
    content = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(content | attributes))


def test_attributes_may_be_ignored(theirs, tmp_path):
    change(theirs, strange=1)
    with pytest.raises(ValueError, match=r"strange=1.*t2t.load\(..., ignore_attributes"):
        t2t.load(theirs)
    loaded = t2t.load(theirs, ignore_attributes=["strange"])
    assert loaded.config == MODEL
    assert t2t.load(theirs, head=t2t.heads.PRETRAINING, ignore_attributes=["strange"]).config == MODEL
    with pytest.raises(UsageError, match="has no attribute 'stranger' to ignore"):
        t2t.load(theirs, ignore_attributes=["stranger"])
    assert cli.main(["import", str(theirs), str(tmp_path / "ours"), "--ignore-attributes", "strange"]) == 0
    with pytest.raises(UsageError, match="is a model of t2t: its config.json has no attributes to ignore"):
        t2t.load(tmp_path / "ours", ignore_attributes=["strange"])


def test_a_model_of_bytes_needs_no_file_of_a_vocabulary(theirs, tmp_path):
    change(theirs, tokenizer_class="ByT5Tokenizer")
    assert t2t.load(theirs).vocabulary == BYTES
    assert cli.main(["import", str(theirs), str(tmp_path / "ours")]) == 0
    assert t2t.load(tmp_path / "ours").vocabulary == BYTES


def test_a_vocabulary_that_is_not_understood_is_missed_where_one_is_needed(theirs, tmp_path, caplog, capsys):
    (theirs / "spiece.model").write_text("no model")
    with caplog.at_level(logging.WARNING):
        loaded = t2t.load(theirs)
    assert "opens without its vocabulary, which is not understood" in caplog.text
    assert "spiece.model cannot be read" in caplog.text
    assert loaded.vocabulary is None
    with pytest.raises(ValueError, match=r"no vocabulary to read text with .*spiece.model cannot be read"):
        loaded.generate(["a"])
    loaded.export(tmp_path / "again")
    assert t2t.load(tmp_path / "again").config == MODEL

    # An import says it before it writes, and how to go on.
    ours = tmp_path / "ours"
    assert cli.main(["import", str(theirs), str(ours)]) == 2
    message = capsys.readouterr().err
    assert "spiece.model cannot be read" in message
    assert "--vocabulary PATH" in message and "--without-vocabulary" in message
    assert not ours.exists()
    assert cli.main(["import", str(theirs), str(ours), "--without-vocabulary"]) == 0
    assert t2t.load(ours).vocabulary is None
    BYTES.save(tmp_path / "bytes")
    arguments = ["import", str(theirs), str(ours), "--overwrite", "--vocabulary", str(tmp_path / "bytes")]
    assert cli.main(arguments) == 0
    assert t2t.load(ours).vocabulary == BYTES
    assert cli.main([*arguments, "--without-vocabulary"]) == 2
    assert "cannot both be" in capsys.readouterr().err
