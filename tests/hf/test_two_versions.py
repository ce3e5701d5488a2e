"""Our exports in transformers 4.57.6: no key missing or left over, the same logits as ours, the same tokenizer ids.

One process of the old version opens all directories, since importing it takes longer than everything else.
"""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import vocabulary as vocabularies
from t2t.families import gpt2, t5
from t2t.hf import export, load, tokenizer
from t2t.models import base
from tests.cases import marked
from tests.hf import lines, oracle, tiny, version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

MODELS = {
    **tiny.ALL,
    "untied": dataclasses.replace(tiny.MASKED, head=dataclasses.replace(tiny.MASKED.head, tied=False)),
    "gpt2-untied": gpt2.gpt2(num_layers=1, d_model=12, num_heads=2, d_ff=7, vocab_size=11, max_positions=9, tied=False),
}
SWIGLU = t5.t5(num_layers=1, gated=True, activation="silu", tied=False, **tiny.SIZES)

OPEN_MODELS = """
answer = {}
for name, (path, architecture, inputs) in given["models"].items():
    cls = getattr(transformers, architecture)
    model, info = cls.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
    with torch.no_grad():
        out = model.eval()(**{k: torch.tensor(v) for k, v in inputs.items()})
    logits = next((out[k] for k in ("logits", "prediction_logits", "last_hidden_state") if k in out))
    problems = {k: sorted(map(str, v)) for k, v in info.items() if v}
    answer[name] = {"problems": problems, "logits": logits.tolist(), "dtype": str(model.dtype)}
"""

OPEN_CASES = """
answer = {}
for name, (path, architecture, inputs) in given["models"].items():
    cls = getattr(transformers, architecture, None)
    if cls is None:
        answer[name] = None
        continue
    model, info = cls.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
    with torch.no_grad():
        out = model.eval()(**{k: torch.tensor(v) for k, v in inputs.items()}, return_dict=True)
    names = ("logits", "prediction_logits", "start_logits", "last_hidden_state")
    scores = next(out[k] for k in names if k in out)
    answer[name] = {"problems": {k: sorted(map(str, v)) for k, v in info.items() if v}, "scores": scores.tolist()}
"""

SAVE_CASES = """
answer = {}
for name, (path, architecture, config, inputs) in given["models"].items():
    cls = getattr(transformers, architecture, None)
    if cls is None:
        continue
    config = cls.config_class(**config)
    config._attn_implementation = "eager"
    model = cls(config).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = 0.15 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(path)
    with torch.no_grad():
        out = model(**{k: torch.tensor(v) for k, v in inputs.items()}, return_dict=True)
    names = ("mc_logits", "logits", "prediction_logits", "start_logits", "last_hidden_state")
    answer[name] = next([k, out[k].tolist()] for k in names if k in out)
"""

OPEN_TOKENIZERS = """
answer = {}
for name, path in given["tokenizers"].items():
    opened = transformers.AutoTokenizer.from_pretrained(path)
    texts = json.load(open(given["texts"]))
    pair = opened("a text", "another")
    answer[name] = {"ids": opened(texts, add_special_tokens=False)["input_ids"], "class": type(opened).__name__,
                    "pair": pair["input_ids"], "keys": sorted(pair), "size": len(opened),
                    "decoded": opened.decode(opened("Hello, world.")["input_ids"], skip_special_tokens=True)}
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What 4.57.6 computes with our exports, and what we compute."""
    rng = np.random.default_rng(0)
    models, ours = {}, {}
    for name, config in {**MODELS, "swiglu": SWIGLU}.items():
        directory = tmp_path_factory.mktemp(name.replace("-", "_"))
        params = jax.tree.map(lambda leaf: jnp.asarray(0.3 * leaf), tiny.params(config))
        export.export(directory, config=config, params=params)
        architecture = json.loads((directory / "config.json").read_text())["architectures"][0]
        tokens = rng.integers(2, config.vocab_size, (2, 8)).astype(np.int32)
        decoder_tokens = rng.integers(2, config.vocab_size, (2, 5)).astype(np.int32)
        inputs, batch = {"input_ids": tokens.tolist()}, {"encoder_input_tokens": tokens}
        if architecture.startswith("T5"):
            inputs["decoder_input_ids"] = decoder_tokens.tolist()
            batch["decoder_input_tokens"] = decoder_tokens
        elif not architecture.startswith("Bert"):
            batch = {"decoder_input_tokens": tokens}
        models[name] = (str(directory), architecture, inputs)
        output = base.Network(config).apply(params, batch)
        ours[name] = np.asarray(output.last_hidden if output.logits is None else output.logits)
    return version4.run(OPEN_MODELS, models=models), ours


@pytest.mark.parametrize("name", [*MODELS, "swiglu"])
def test_models(opened, name):
    theirs, ours = opened
    assert theirs[name]["problems"] == {}
    np.testing.assert_allclose(np.array(theirs[name]["logits"]), ours[name], atol=1e-4, rtol=1e-4)


FIRST = [parameter.values[0] for parameter in marked(oracle.CASES) if not parameter.marks]
UNTIED = [case for case in oracle.CASES if case not in FIRST and case.config.get("tie_word_embeddings") is False]


def _export(case, directory):
    """An export of ours, its class, input as lists, and what transformers 5 computes with it."""
    import torch
    import transformers

    opened = load.open_directory(oracle.save(oracle.build(case), directory / "theirs"))
    params = jax.tree.map(lambda leaf: 0.3 * leaf, tiny.params(opened.config))
    export.export(directory / "ours", config=opened.config, params=params)
    architecture = json.loads((directory / "ours" / "config.json").read_text())["architectures"][0]
    inputs = oracle.inputs(case, oracle.batch(case, padded=True))
    model = getattr(transformers, architecture).from_pretrained(directory / "ours", attn_implementation="eager")
    with torch.no_grad():
        out = model.eval()(**{k: torch.tensor(v) for k, v in inputs.items()}, return_dict=True)
    names = ("logits", "prediction_logits", "start_logits", "last_hidden_state")
    scores = next(out[k] for k in names if k in out).numpy()
    return (str(directory / "ours"), architecture, {k: v.tolist() for k, v in inputs.items()}), scores


@pytest.mark.parametrize("cases", [FIRST, pytest.param(UNTIED, marks=pytest.mark.nightly)], ids=["first", "untied"])
def test_every_class_opens_in_both_versions_and_computes_the_same(cases, tmp_path):
    """One of each class, and all whose output is their own."""
    exports = {case.name: _export(case, tmp_path / case.name) for case in cases}
    found = version4.run(OPEN_CASES, models={name: model for name, (model, _) in exports.items()})
    wrong = {name: "no such class" if four is None else four["problems"] for name, four in found.items()}
    wrong = {name: problem for name, problem in wrong.items() if problem}
    for case in cases:
        if case.name in wrong:
            continue
        side = "decoder" if case.side != "encoder" else "encoder"
        real = oracle.batch(case, padded=True)[f"{side}_segment_ids"] != 0
        four, five = np.array(found[case.name]["scores"]), exports[case.name][1]
        if four.shape[: real.ndim] == real.shape:
            four, five = four[real], five[real]
        if not np.allclose(four, five, atol=1e-4, rtol=1e-4):
            wrong[case.name] = np.abs(four - five).max()
    assert wrong == {}


def _as_4_57(config):
    """The attributes by the names of 4.57, which reads ModernBERT's bases of rotations by no other."""
    bases = {
        name: config["rope_parameters"][kind]["rope_theta"]
        for name, kind in (("global_rope_theta", "full_attention"), ("local_rope_theta", "sliding_attention"))
        if "rope_parameters" in config and kind in config["rope_parameters"]
    }
    return {name: value for name, value in config.items() if name != "rope_parameters" or not bases} | bases


@pytest.mark.nightly
def test_what_4_57_wrote_of_every_class_is_read(tmp_path):
    """Its own names of attributes and tensors, and what it leaves out of them."""
    models = {
        case.name: (
            str(tmp_path / case.name),
            case.architecture,
            _as_4_57(case.config),
            {name: array.tolist() for name, array in oracle.inputs(case, oracle.batch(case, padded=True)).items()},
        )
        for case in [*FIRST, *UNTIED]
    }
    found = version4.run(SAVE_CASES, models=models)
    wrong = {}
    for case in [*FIRST, *UNTIED]:
        if case.name not in found:
            continue
        batch = oracle.batch(case, padded=True)
        try:
            opened = load.open_directory(tmp_path / case.name)
        except ValueError as error:
            wrong[case.name] = str(error)
            continue
        output = base.Network(opened.config).apply(jax.tree.map(jnp.asarray, opened.params()), batch)
        kind, theirs = found[case.name][0], np.array(found[case.name][1])
        names = {"mc_logits": "logits", "prediction_logits": "logits", "last_hidden_state": "last_hidden"}
        ours = getattr(output, names.get(kind, kind))
        ours = np.asarray(output.next_sentence_logits if ours is None else ours)
        real = batch[f"{'decoder' if case.side != 'encoder' else 'encoder'}_segment_ids"] != 0
        if theirs.shape[: real.ndim] == real.shape:
            ours, theirs = ours[real], theirs[real]
        if not np.allclose(ours, theirs, atol=1e-4, rtol=1e-4):
            wrong[case.name] = np.abs(ours - theirs).max()
    assert wrong == {}


def test_tokenizers(tmp_path):
    vocabulary = vocabularies.train_sentencepiece(lines.corpus(), size=1200)
    kinds = {"sentencepiece": vocabulary, "bytes": vocabularies.ByteVocabulary()}
    paths = {}
    for name, kind in kinds.items():
        (tmp_path / name).mkdir()
        tokenizer.write(tmp_path / name, kind, before=[], after=[1], input_names=["input_ids", "attention_mask"])
        paths[name] = str(tmp_path / name)
    texts = lines.comparable(2000)
    assert len(texts) == 2000
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    found = version4.run(OPEN_TOKENIZERS, tokenizers=paths, texts=str(tmp_path / "texts.json"))
    for name, kind in kinds.items():
        assert found[name]["ids"] == kind.encode_batch(texts)
        assert found[name]["class"] == "PreTrainedTokenizerFast"
        assert found[name]["pair"] == [*kind.encode("a text"), 1, *kind.encode("another"), 1]
        assert found[name]["keys"] == ["attention_mask", "input_ids"]
        assert found[name]["decoded"] == "Hello, world."
        assert found[name]["size"] == kind.size
