"""Greedy generation is transformers' token for token, and the code on a model card runs."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.decode import decoding, generate
from t2t.families import bart, bert, gpt2, t5
from t2t.hf import export, load
from t2t.models import base
from tests.cases import marked
from tests.hf import oracle, tiny

pytestmark = [pytest.mark.hf, pytest.mark.slow]
CASES = [case for case in oracle.CASES if case.is_decoding]
NEW = 12


@pytest.mark.parametrize("case", marked(CASES, by=lambda case: case.name.split("-")[0]))
def test_greedy_tokens(case, tmp_path):
    import torch

    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    rng = np.random.default_rng(3)
    prompts = [rng.integers(2, case.config["vocab_size"], length).tolist() for length in (9, 4, 6)]
    both_sides = model.config.is_encoder_decoder
    ours = generate.generate(
        base.Network(opened.config),
        jax.tree.map(jnp.asarray, opened.params()),
        prompts,
        decoding=decoding.Decoding(eos_id=1, max_tokens=NEW),
        start_id=model.config.decoder_start_token_id if both_sides else None,
    )
    options = {} if both_sides or case.name == "gpt2" else {"eos_token_id": 1}
    # T5's cache in transformers is made for as many layers as the encoder has.
    options |= {"use_cache": False} if both_sides else {}
    for prompt, found in zip(prompts, ours, strict=True):
        ids = torch.tensor([prompt])
        with torch.no_grad():
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, pad_token_id=0, **options
            )[0].tolist()
        theirs = out[1:] if both_sides else out[len(prompt) :]
        assert [int(token) for token in found] == (theirs[: theirs.index(1)] if 1 in theirs else theirs)


SIDE = bart.Side(num_layers=2, num_heads=3, d_ff=7)
EXPORTED = {
    "bart": (
        bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=11, max_positions=29),
        "BartForConditionalGeneration",
    ),
    "t5-1.1": (tiny.T5_1_1, "T5ForConditionalGeneration"),
    "gpt2": (gpt2.gpt2(num_layers=2, d_model=12, num_heads=3, vocab_size=11, max_positions=29), "GPT2LMHeadModel"),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_transformers_writes_our_greedy_tokens_with_an_exported_model(name, tmp_path):
    import torch
    import transformers

    config, architecture = EXPORTED[name]
    params = tiny.params(config, seed={"bart": 4}.get(name, 2))  # with which the rows differ
    export.export(tmp_path, config=config, params=params)
    model = getattr(transformers, architecture).from_pretrained(tmp_path)
    rng = np.random.default_rng(5)
    prompts = [rng.integers(2, config.vocab_size, length).tolist() for length in (9, 3, 6, 5, 7)]
    both_sides = model.config.is_encoder_decoder
    end = model.generation_config.eos_token_id if both_sides else 1
    ours = generate.generate(
        base.Network(config),
        jax.tree.map(jnp.asarray, params),
        prompts,
        decoding=decoding.Decoding(eos_id=end, max_tokens=NEW),
        start_id=model.generation_config.decoder_start_token_id if both_sides else None,
    )
    # An export without a vocabulary names end and padding of encoder-decoders alone. BART's longest text ends by force.
    options = {"forced_eos_token_id": None} if both_sides else {"eos_token_id": 1, "pad_token_id": 0}
    for prompt, found in zip(prompts, ours, strict=True):
        out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW, **options)[0].tolist()
        theirs = out[1:] if both_sides else out[len(prompt) :]
        assert [int(token) for token in found] == (theirs[: theirs.index(end)] if end in theirs else theirs)
    assert len({tuple(map(int, found)) for found in ours}) > 1


@pytest.mark.parametrize("kind", ["t5", "gpt2", "masked"])
def test_the_code_on_the_card_runs(kind, tmp_path):
    vocabulary = vocabularies.ByteVocabulary()
    sizes = {"num_layers": 1, "d_model": 12, "num_heads": 3, "vocab_size": 360}
    config = {
        "t5": lambda: t5.t5(d_ff=7, **sizes),
        "gpt2": lambda: gpt2.gpt2(max_positions=64, **sizes),
        "masked": lambda: bert.with_head(bert.bert(d_ff=7, **sizes), heads.MaskedLM()),
    }[kind]()
    export.export(tmp_path, config=config, params=tiny.params(config), vocabulary=vocabulary)
    code = (tmp_path / "README.md").read_text().split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
