"""`t2t tasks`: what cannot work stops before TensorFlow is imported."""

from t2t import cli


def test_a_vocabulary_that_is_not_there(tmp_path, capsys):
    assert cli.main(["tasks", "pydocs_topic", "--vocabulary", str(tmp_path / "nothing")]) == 2
    assert f"--vocabulary: vocabulary {tmp_path / 'nothing'} does not exist" in capsys.readouterr().err
    (tmp_path / "vocabulary.json").write_text("{")
    assert cli.main(["tasks", "pydocs_topic", "--vocabulary", str(tmp_path)]) == 2
