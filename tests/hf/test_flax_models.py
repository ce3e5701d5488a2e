"""Directories that transformers' own Flax classes wrote: opened, with the logits that those classes compute."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.hf import load
from t2t.models import base
from tests.hf import version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

SIZES = {"vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
         "intermediate_size": 20, "max_position_embeddings": 16}  # fmt: skip
T5 = {"vocab_size": 31, "d_model": 12, "d_kv": 5, "d_ff": 20, "num_heads": 3, "num_layers": 2,
      "decoder_start_token_id": 0}  # fmt: skip
GPT2 = {"vocab_size": 31, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16}
MODELS = {
    "FlaxBertForMaskedLM": SIZES,
    "FlaxBertForPreTraining": SIZES,
    "FlaxBertForSequenceClassification": SIZES,
    "FlaxT5ForConditionalGeneration": T5,
    "FlaxGPT2LMHeadModel": GPT2,
}

WRITE = """
import jax, jax.numpy as jnp
clip = jnp.clip  # whose arguments had other names when these classes were written
jnp.clip = lambda x, a_min=None, a_max=None: clip(x, a_min, a_max)
answer = {}
for name, config in given["models"].items():
    model = getattr(transformers, name)(getattr(transformers, name).config_class(**config))
    leaves, tree = jax.tree.flatten(model.params)
    rng = np.random.default_rng(0)
    model.params = jax.tree.unflatten(tree, [jnp.asarray(rng.normal(size=x.shape) * 0.3, jnp.float32) for x in leaves])
    model.save_pretrained(given["directory"] + "/" + name)
    tokens = jnp.asarray(given["tokens"])
    more = {"decoder_input_ids": tokens} if "T5" in name else {}
    out = model(tokens, **more)
    answer[name] = np.asarray(out["logits"] if "logits" in out else out["prediction_logits"]).tolist()
"""

TOKENS = np.random.default_rng(1).integers(2, 31, (2, 9)).astype(np.int32)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("flax")
    return directory, version4.run(WRITE, models=MODELS, directory=str(directory), tokens=TOKENS.tolist())


@pytest.mark.parametrize("name", MODELS)
def test_flax_models_are_read(written, name):
    directory, logits = written
    assert not list((directory / name).glob("*.safetensors"))
    opened = load.open_directory(directory / name)
    batch = {"encoder_input_tokens": TOKENS, "decoder_input_tokens": TOKENS}
    output = base.Network(opened.config).apply(jax.tree.map(jnp.asarray, opened.params()), batch)
    np.testing.assert_allclose(output.logits, np.array(logits[name]), atol=1e-4, rtol=1e-4)
