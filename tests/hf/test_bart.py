"""A trained BART gives the outputs and texts that transformers recorded; its output's bias and start token are kept."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import t2t
from t2t import heads, vocabulary
from t2t.decode import decoding, generate
from t2t.families import bart
from t2t.hf import config_map, export, files, load
from t2t.models import base
from tests.hf import tiny
from tests.shared_data import shared_data

START, END = 1, 2
SIDE = bart.Side(num_layers=2, num_heads=3, d_ff=7)
TINY = bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=11, max_positions=9)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """The trained model, which writes words as they are spoken, under the names that every directory has."""
    directory = tmp_path_factory.mktemp("misaki")
    for theirs, ours in {"us_bart.safetensors": files.SINGLE, "us_bart_config.json": "config.json"}.items():
        (directory / ours).symlink_to(shared_data("weights", "misaki_bart", theirs))
    return directory


@pytest.fixture(scope="module")
def trained(directory):
    opened = load.open_directory(directory, ignore_attributes=["grapheme_chars", "phoneme_chars"])
    assert opened.dropped == opened.fresh == ()
    return base.Network(opened.config), jax.tree.map(jnp.asarray, opened.params())


@pytest.fixture(scope="module")
def recorded():
    return np.load(shared_data("weights", "_reference_hf_outputs", "misaki_bart_us.npz"))


def write(trained, prompts, **settings) -> list[list[int]]:
    settings = decoding.Decoding(eos_id=END, max_tokens=60, **settings)
    found = generate.generate(*trained, prompts, decoding=settings, start_id=START, batch_size=128)
    return [[int(token) for token in row] for row in found]


def test_logits_and_encoder_states(trained, recorded):
    network, params = trained
    batch = {
        "encoder_input_tokens": recorded["input_ids"].astype(np.int32),
        "encoder_segment_ids": recorded["attention_mask"].astype(np.int32),
        "decoder_input_tokens": recorded["decoder_input_ids"].astype(np.int32),
    }
    output = jax.jit(network.apply)(params, batch)
    np.testing.assert_allclose(output.logits, recorded["logits"], atol=1e-4, rtol=1e-4)
    real = recorded["attention_mask"] != 0
    states = np.asarray(output.encoder_last_hidden)
    np.testing.assert_allclose(states[real], recorded["encoder_last"][real], atol=1e-4, rtol=1e-4)


# The beams of transformers end and are ranked by other rules (`t2t/decode/beam.py`); for these words they agree.
@pytest.mark.parametrize(("name", "settings"), [("greedy", {}), ("beam4", {"beams": 4, "length_penalty": 1.0})])
def test_recorded_texts(trained, recorded, name, settings):
    masks = recorded["attention_mask"] != 0
    prompts = [row[mask].tolist() for row, mask in zip(recorded["input_ids"], masks, strict=True)]
    expected = [row[1:].tolist() for row in recorded[name]]
    assert write(trained, prompts, **settings) == [row[: row.index(END)] for row in expected]


@pytest.mark.slow
def test_four_hundred_words(trained, directory):
    config = json.loads((directory / "config.json").read_text())
    read, spoken = config["grapheme_chars"], config["phoneme_chars"]
    words = json.loads(shared_data("weights", "misaki_bart", "us_g2p_400.json").read_text())
    prompts = [[START, *map(read.index, word["word"]), END] for word in words]
    # Below 4 are padding, start, end and unknown; the model writes the start once more.
    found = ["".join(spoken[token] for token in row if token > 3) for row in write(trained, prompts)]
    assert found == [word["hf_greedy"] for word in words]


def test_the_start_token_is_that_of_the_config(tmp_path):
    words = vocabulary.ByteVocabulary()
    config = bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=384, max_positions=9)
    export.export(tmp_path, config=config, params=tiny.params(config), vocabulary=words, start_id=words.eos_id)
    for name in ("config.json", "generation_config.json"):
        assert json.loads((tmp_path / name).read_text())["decoder_start_token_id"] == words.eos_id
    loaded = t2t.load(tmp_path)
    assert loaded.start_id == words.eos_id
    loaded.export(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["decoder_start_token_id"] == words.eos_id


def test_special_tokens_of_the_published_models(tmp_path):
    export.export(tmp_path, config=TINY, params=tiny.params(TINY))
    written = json.loads((tmp_path / "generation_config.json").read_text())
    del written["transformers_version"]
    assert written == {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
                       "forced_eos_token_id": 2}  # fmt: skip


def test_the_bias_of_the_output_is_written_as_zeros_and_read_where_it_is_not(tmp_path):
    params = tiny.params(TINY)
    export.export(tmp_path, config=TINY, params=params)
    tensors = safetensors.numpy.load_file(tmp_path / files.SINGLE)
    np.testing.assert_array_equal(tensors["final_logits_bias"], np.zeros((1, 11)))
    assert load.open_directory(tmp_path).config == TINY
    bias = np.arange(11, dtype=np.float32)
    changed = tensors | {"final_logits_bias": bias[None]}
    safetensors.numpy.save_file(changed, tmp_path / files.SINGLE, metadata={"format": "pt"})
    opened = load.open_directory(tmp_path)
    assert opened.config.head.use_bias
    tiny.assert_trees_equal(opened.params(), params | {"head": {"bias": bias}})
    export.export(tmp_path / "again", config=opened.config, params=opened.params())
    again = safetensors.numpy.load_file(tmp_path / "again" / files.SINGLE)
    np.testing.assert_array_equal(again["final_logits_bias"], bias[None])
    labelled = load.open_directory(tmp_path, head=heads.SequenceClassification())
    assert labelled.dropped == ("final_logits_bias",)


def test_an_untied_model_without_tables_of_its_sides_shares_one_as_in_transformers_4(tmp_path):
    params = tiny.params(TINY)
    export.export(tmp_path, config=TINY, params=params)
    config = json.loads((tmp_path / "config.json").read_text()) | {"tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    output = np.random.default_rng(1).normal(size=(11, 12)).astype(np.float32)
    tensors = safetensors.numpy.load_file(tmp_path / files.SINGLE) | {"lm_head.weight": output}
    safetensors.numpy.save_file(tensors, tmp_path / files.SINGLE, metadata={"format": "pt"})
    opened = load.open_directory(tmp_path)
    tiny.assert_trees_equal(opened.params(), params | {"head": {"kernel": output.T}})
    with pytest.raises(config_map.InexpressibleError, match="some are one"):
        export.export(tmp_path / "again", config=opened.config, params=opened.params())


@pytest.mark.parametrize(("model_type", "form"), [("bart", {}), ("mbart", {"is_pre_norm": True, "scale": 12**0.5})])
def test_an_untied_model_is_written_with_all_four_tables(tmp_path, model_type, form):
    whole = bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=11, max_positions=9, **form)
    params = tiny.params(whole)
    export.export(tmp_path, config=whole, params=params)
    table = params["embed"]["embedding"]
    own = {f"model.{side}.embed_tokens.weight": table + i for i, side in enumerate(("encoder", "decoder"))}
    tensors = safetensors.numpy.load_file(tmp_path / files.SINGLE) | own | {"lm_head.weight": table + 2}
    safetensors.numpy.save_file(tensors, tmp_path / files.SINGLE, metadata={"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text()) | {"tie_word_embeddings": False}
    assert config["model_type"] == model_type
    (tmp_path / "config.json").write_text(json.dumps(config))
    opened = load.open_directory(tmp_path)
    export.export(tmp_path / "again", config=opened.config, params=opened.params())
    again = safetensors.numpy.load_file(tmp_path / "again" / files.SINGLE)
    for name, expected in {**own, "lm_head.weight": table + 2, "model.shared.weight": table}.items():
        np.testing.assert_array_equal(again[name], expected)
