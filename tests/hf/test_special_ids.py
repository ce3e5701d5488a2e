"""Which special ids an exported config.json names."""

import json

import pytest

from t2t.hf import export, load
from tests.hf import tiny


def exported(directory, name, **options):
    export.export(directory, config=tiny.ALL[name], params=tiny.params(tiny.ALL[name]), **options)
    return json.loads((directory / "config.json").read_text())


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5"])
def test_without_a_vocabulary_special_ids_are_those_of_the_files_it_comes_from(tmp_path, name):
    config = exported(tmp_path / "theirs", name)
    special = {"pad_token_id": 3, "bos_token_id": 4, "eos_token_id": [5, 6]}
    nonsense = {"sep_token_id": 99}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({**config, **special, **nonsense}))
    opened = load.open_directory(tmp_path / "theirs")
    again = exported(tmp_path / "again", name, origin=opened.origin)
    assert {**again, **special} == again and not set(nonsense) & set(again)
