"""How a published model generates is read from its files, and written by an export of it, whichever way it took."""

import json
import logging
import pathlib
import re

import jax
import numpy as np
import pytest

import t2t
from t2t import cli, heads
from t2t import vocabulary as vocabularies
from t2t.errors import UsageError
from t2t.families import bart, gpt2
from t2t.hf import export, generation_settings
from tests.hf import tiny

PUBLISHED = json.loads((pathlib.Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
CNN = PUBLISHED["facebook/bart-large-cnn"]["config"]
OF_CNN = {
    "forced_bos_token_id": 0, "forced_eos_token_id": 2, "early_stopping": True, "length_penalty": 2.0,
    "max_length": 142, "min_length": 56, "no_repeat_ngram_size": 3, "num_beams": 4,
}  # fmt: skip
SIDE = bart.Side(num_layers=1, num_heads=3, d_ff=7)
WORDS = vocabularies.TokenizerVocabulary(
    json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "decoder": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "added_tokens": [
            {"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True} for i, name in enumerate(("<s>", "<pad>", "</s>", "<unk>"))
        ],
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {
            name: i for i, name in enumerate(("<s>", "<pad>", "</s>", "<unk>", *"abcdefg"))
        }},
    })
)  # fmt: skip
TINY = bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=WORDS.size, max_positions=9)


def without_version(path: pathlib.Path) -> dict:
    written = json.loads(path.read_text(encoding="utf-8"))
    del written["transformers_version"]
    return written


def test_settings_of_config_json(tmp_path):
    assert generation_settings.read(tmp_path, CNN) == OF_CNN
    older = {name: value for name, value in CNN.items() if name != "forced_bos_token_id"}
    assert generation_settings.read(tmp_path, older) == OF_CNN
    assert generation_settings.read(tmp_path, PUBLISHED["google-t5/t5-small"]["config"]) == {
        "forced_bos_token_id": None
    }


def test_settings_of_their_own_file_go_first(tmp_path, caplog):
    file = tmp_path / "generation_config.json"
    file.write_text(json.dumps({"_from_model_config": True, "num_beams": 2, "max_length": 20, "guidance_scale": 3.0,
                                "pad_token_id": 1}))  # fmt: skip
    with caplog.at_level(logging.WARNING):
        found = generation_settings.read(tmp_path, CNN)
    assert found == {"num_beams": 2, "forced_bos_token_id": None, "forced_eos_token_id": None}
    assert "the settings guidance_scale are not carried over" in caplog.text
    file.write_text("[]")
    with pytest.raises(UsageError, match="holds a list; expected is a JSON object"):
        generation_settings.read(tmp_path, CNN)


@pytest.mark.parametrize(
    ("name", "value", "possible"),
    [
        ("num_beams", 0, "an integer, 1 or more"),
        ("num_beams", -3, "an integer, 1 or more"),
        ("num_beams", "4", "an integer, 1 or more"),
        ("num_beams", True, "an integer, 1 or more"),
        ("num_return_sequences", "x", "an integer, 1 or more"),
        ("max_length", 2.5, "an integer, 0 or more"),
        ("do_sample", 1, "true or false"),
        ("early_stopping", "always", 'true, false or "never"'),
        ("temperature", -1, "a number, 0 or more"),
        ("top_p", 1.5, "a number from 0 to 1"),
        ("length_penalty", float("nan"), "a number"),
        ("repetition_penalty", 0, "a positive number"),
        ("suppress_tokens", "x", "a list of tokens' ids"),
        ("bad_words_ids", [3], "a list of lists of tokens' ids"),
        ("exponential_decay_length_penalty", [3], "a list of an integer and a number"),
        ("forced_bos_token_id", "x", "a token's id"),
        ("forced_bos_token_id", 11, "less than vocab_size, 11"),
        ("forced_eos_token_id", [-1], "a token's id or a list of them"),
    ],
)
def test_values_that_no_setting_has_are_named(tmp_path, name, value, possible):
    said = re.escape(f"config.json: {name} is {json.dumps(value)}; it must be {possible}")
    with pytest.raises(UsageError, match=said):
        generation_settings.read(tmp_path, {"vocab_size": 11, name: value})
    (tmp_path / "generation_config.json").write_text(json.dumps({name: value}))
    with pytest.raises(UsageError, match=f"generation_{said}"):
        generation_settings.read(tmp_path, {"vocab_size": 11})


def test_null_is_the_usual_value(tmp_path):
    said = dict.fromkeys(generation_settings.SETTINGS)
    assert set(generation_settings.read(tmp_path, said).values()) == {None}
    (tmp_path / "generation_config.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not JSON"):
        generation_settings.read(tmp_path, {})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"top_k": 5, "temperature": 0.5, "max_length": 30}, {"max_length": 30}),
        ({"top_k": 5, "do_sample": True}, {"top_k": 5, "do_sample": True}),
        ({"length_penalty": 2.0, "early_stopping": True}, {}),
        ({"num_return_sequences": 3, "num_beams": 2}, {"num_beams": 2}),
        ({"num_return_sequences": 3, "num_beams": 2, "do_sample": True}, {"num_beams": 2, "do_sample": True}),
        ({"num_return_sequences": 3, "do_sample": True}, {"num_return_sequences": 3, "do_sample": True}),
        ({"max_new_tokens": None, "do_sample": False, "num_beams": 1}, {}),
    ],
)
def test_what_has_no_effect_is_left_out(tmp_path, given, kept):
    found = generation_settings.read(tmp_path, given)
    assert {name: value for name, value in found.items() if value is not None} == kept
    architecture, version = "BartForConditionalGeneration", "5"
    assert generation_settings.content({}, architecture=architecture, settings=found, version=version) == {
        "transformers_version": "5",
        **kept,
    }


@pytest.fixture
def theirs(tmp_path):
    """A small model with the settings of facebook/bart-large-cnn."""
    directory = tmp_path / "theirs"
    export.export(directory, config=TINY, params=tiny.params(TINY), vocabulary=WORDS, start_id=2)
    (directory / "generation_config.json").unlink()
    own = json.loads((directory / "config.json").read_text())
    settings = {
        name: CNN[name] for name in (*OF_CNN, "force_bos_token_to_be_generated", "task_specific_params", "prefix")
    }
    (directory / "config.json").write_text(json.dumps(own | settings))
    return directory


@pytest.mark.parametrize("way", ["load", "import"])
def test_they_come_back(theirs, tmp_path, way):
    if way == "import":
        assert cli.main(["import", str(theirs), str(tmp_path / "ours")]) == 0
    t2t.load(theirs if way == "load" else tmp_path / "ours").export(tmp_path / "again")
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    assert without_version(tmp_path / "again" / "generation_config.json") == special | OF_CNN
    written = json.loads((tmp_path / "again" / "config.json").read_text())
    assert written["task_specific_params"] == CNN["task_specific_params"]
    assert written["prefix"] == " "


def test_a_head_that_does_not_generate_leaves_them_out(theirs, tmp_path):
    t2t.load(theirs, head=heads.SequenceClassification()).export(tmp_path / "again")
    assert not (tmp_path / "again" / "generation_config.json").exists()


def test_models_of_ours_write_the_token_before_a_text_first(tmp_path):
    """A BART of ours learned texts that begin with <s>."""
    model = t2t.api.Model(config=TINY, params=tiny.params(TINY), vocabulary=WORDS, start_id=2)
    model.export(tmp_path)
    assert without_version(tmp_path / "generation_config.json")["forced_bos_token_id"] == 0
    assert model._first_id == 0
    gpt = gpt2.gpt2(num_layers=1, d_model=12, num_heads=3, vocab_size=WORDS.size, max_positions=9)
    assert t2t.api.Model(config=gpt, params=None, vocabulary=WORDS)._first_id is None


@pytest.mark.slow
def test_the_token_that_is_forced_is_written_first(theirs):
    loaded = t2t.load(theirs)
    assert loaded._first_id == 0
    found = loaded.generate(["a b c", "d"], max_tokens=5)
    free = jax.tree.map(np.asarray, loaded.params)
    changed = t2t.api.Model(config=TINY, params=free, vocabulary=WORDS, start_id=2,
                            about={"origin": {"generation": {"forced_bos_token_id": 5}}})  # fmt: skip
    assert all(text.startswith("b") for text in changed.generate(["a b c", "d"], max_tokens=5))
    assert all(text.startswith("b") for text in changed.generate(["a b c", "d"], max_tokens=5, beams=2))
    assert not all(text.startswith("b") for text in found)


@pytest.mark.hf
@pytest.mark.slow
def test_transformers_generates_as_we_do(theirs, tmp_path):
    import torch
    import transformers

    loaded = t2t.load(theirs)
    loaded.export(tmp_path / "again")
    model = transformers.BartForConditionalGeneration.from_pretrained(tmp_path / "again")
    assert model.generation_config.forced_bos_token_id == 0
    assert model.generation_config.no_repeat_ngram_size == 3
    texts = ["a b c", "d", "e f g a"]
    ours = loaded.generate(texts, max_tokens=8)
    options = {"num_beams": 1, "max_length": None, "min_length": 0, "max_new_tokens": 8, "no_repeat_ngram_size": 0,
               "forced_eos_token_id": None, "early_stopping": False, "length_penalty": 1.0}  # fmt: skip
    for text, found in zip(texts, ours, strict=True):
        ids = torch.tensor([loaded._inputs([text])[0]])
        out = model.generate(ids, do_sample=False, **options)[0].tolist()
        assert out[1] == 0
        assert WORDS.decode(out[1:]) == found
