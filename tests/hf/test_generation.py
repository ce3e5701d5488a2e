"""Greedy generation is transformers' token for token, and the code on a model card runs."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.decode import decoding, generate
from t2t.families import bart, bert, gpt2, t5, xlm, xlnet
from t2t.hf import export, load
from t2t.models import base
from t2t.models.encoder import EncoderConfig
from tests.cases import by_family, marked
from tests.hf import oracle, tiny

pytestmark = [pytest.mark.hf, pytest.mark.slow]
CASES = [case for case in oracle.CASES if case.is_decoding]
NEW = 12


@pytest.mark.parametrize("case", marked(CASES, by=by_family))
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
    options = {} if both_sides else {"eos_token_id": 1}
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


SMALL = {"num_layers": 1, "d_model": 12, "num_heads": 3, "vocab_size": 360}
OF_T5 = t5.t5(d_ff=7, **SMALL)
OF_BERT = bert.bert(d_ff=7, **SMALL)
OF_GPT2 = gpt2.gpt2(max_positions=64, **SMALL)
CARDS = {
    "T5ForConditionalGeneration": OF_T5,
    "T5ForConditionalGeneration with a deeper decoder": t5.t5(d_ff=7, num_decoder_layers=2, **SMALL),
    "T5ForSequenceClassification": t5.with_head(OF_T5, heads.SequenceClassification()),
    "T5EncoderModel": EncoderConfig(embed=OF_T5.embed, stack=OF_T5.encoder),
    "GPT2LMHeadModel": OF_GPT2,
    "GPT2DoubleHeadsModel": gpt2.with_head(OF_GPT2, heads.MultipleChoice()),
    "GPT2ForQuestionAnswering": gpt2.with_head(OF_GPT2, heads.QuestionAnswering()),
    "BertModel": OF_BERT,
    "BertForMaskedLM": bert.with_head(OF_BERT, heads.MaskedLM()),
    "BertForPreTraining": bert.with_head(OF_BERT, heads.PRETRAINING),
    "BertForNextSentencePrediction": bert.with_head(OF_BERT, heads.NextSentence()),
    "BertForTokenClassification": bert.with_head(OF_BERT, heads.TokenClassification()),
    "BertForMultipleChoice": bert.with_head(OF_BERT, heads.MultipleChoice()),
    "XLNetLMHeadModel": xlnet.with_head(xlnet.xlnet(d_ff=7, **SMALL), heads.PRETRAINING),
    "XLNetForQuestionAnsweringSimple": xlnet.with_head(xlnet.xlnet(d_ff=7, **SMALL), heads.QuestionAnswering()),
    "XLMWithLMHeadModel": xlm.with_head(xlm.xlm(**SMALL), heads.MaskedLM()),
}
"""Each kind of code that cards show, and the classes whose automatic class is another than their name says."""


@pytest.mark.parametrize("architecture", CARDS)
def test_the_code_on_the_card_runs(architecture, tmp_path, monkeypatch, capsys):
    config, vocabulary = CARDS[architecture], vocabularies.ByteVocabulary()
    export.export(tmp_path, config=config, params=tiny.params(config), vocabulary=vocabulary)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [architecture.split()[0]]
    code = (tmp_path / "README.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out
    assert type(names["model"]).__name__ == architecture.split()[0]
