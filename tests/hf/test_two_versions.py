"""Our exports in transformers 4.57.6 and 5: no key missing or left over, the same scores, the same tokenizer ids.

One process of each opens all directories, since importing it takes longer than a model: one that has neither t2t nor
JAX.
"""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import vocabulary as vocabularies
from t2t.hf import load, tokenizer
from t2t.models import base
from tests import cases
from tests.hf import lines, oracle, version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

FIRST = cases.first_of_each(oracle.CASES, lambda case: case.architecture)
UNTIED = [case for case in oracle.CASES if case.is_untied and case not in FIRST]
ROTARY = [case for case in oracle.CASES if "rope_parameters" in case.config and case not in [*FIRST, *UNTIED]]
"""Of which 4.57 reads other attributes than 5."""
VERSIONS = ("4.57.6", "5")
VOCABULARY = ("LM", "LMHeadModel", "ConditionalGeneration")
"""Endings of classes that score the vocabulary."""

OPEN = """
answer = {"models": {}, "tokenizers": {}}
names = ("logits", "prediction_logits", "start_logits", "last_hidden_state")
for name, (path, architecture, inputs) in given["models"].items():
    cls = getattr(transformers, architecture, None)
    if cls is None:
        answer["models"][name] = None
        continue
    model, info = cls.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
    with torch.no_grad():
        out = model.eval()(**{k: torch.tensor(v) for k, v in inputs.items()}, return_dict=True)
    problems = {k: sorted(map(str, v)) for k, v in info.items() if v}
    answer["models"][name] = {"problems": problems, "scores": next(out[k] for k in names if k in out).tolist()}
texts = json.load(open(given["texts"]))
for name, path in given["tokenizers"].items():
    opened = transformers.AutoTokenizer.from_pretrained(path)
    pair = opened("a text", "another")
    answer["tokenizers"][name] = {
        "ids": opened(texts, add_special_tokens=False)["input_ids"], "class": type(opened).__name__,
        "pair": pair["input_ids"], "keys": sorted(pair), "size": len(opened),
        "decoded": opened.decode(opened("Hello, world.")["input_ids"], skip_special_tokens=True),
    }
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

VOCABULARIES = {
    "sentencepiece": lambda: vocabularies.train_sentencepiece(lines.corpus(), size=1200),
    "bytes": vocabularies.ByteVocabulary,
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What each version makes of all exports, and what we make of those whose output is their own."""
    root, models, ours = tmp_path_factory.mktemp("exports"), {}, {}
    for case in [*FIRST, *UNTIED, *ROTARY]:
        models[case.name], ours[case.name] = _exported(case)
    tokenizers = {name: make() for name, make in VOCABULARIES.items()}
    for name, vocabulary in tokenizers.items():
        (root / name).mkdir()
        names = ["input_ids", "attention_mask"]
        tokenizer.write(root / name, vocabulary, before=[], after=[1], input_names=names)
    (root / "texts.json").write_text(json.dumps(lines.comparable(2000)))
    paths = {name: str(root / name) for name in tokenizers}
    given = {"models": models, "tokenizers": paths, "texts": str(root / "texts.json")}
    found = {version: version4.run(OPEN, version=version, hidden=("t2t", "jax"), **given) for version in VERSIONS}
    return found, ours, tokenizers


def _exported(case: oracle.Case) -> tuple[Any, np.ndarray | None]:
    """An export of ours, with its class and its input as lists; what we compute where the output is the model's own."""
    exported = oracle.exported(case)
    architecture = json.loads((exported.ours / "config.json").read_text())["architectures"][0]
    arrays = oracle.batch(case, padded=True)
    given = str(exported.ours), architecture, {k: v.tolist() for k, v in oracle.inputs(case, arrays).items()}
    if not (case.is_untied and case.architecture.endswith(VOCABULARY)):
        return given, None
    output = jax.jit(base.Network(exported.config).apply)(jax.tree.map(jnp.asarray, exported.params), arrays)
    return given, np.asarray(output.logits)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_class_opens_without_a_key_missing_or_left_over(opened, version):
    """One of each class, all whose output is their own, and all whose rotations are others than usual."""
    models = opened[0][version]["models"]
    assert models.keys() == {case.name for case in [*FIRST, *UNTIED, *ROTARY]}
    assert [name for name, found in models.items() if found is None] == []
    assert {name: found["problems"] for name, found in models.items() if found["problems"]} == {}


def test_both_versions_compute_the_same(opened):
    """What we compute, too, where the output is the model's own; elsewhere tests/hf/test_parity.py compares it."""
    found, ours, _ = opened
    wrong = {}
    for case in [*FIRST, *UNTIED, *ROTARY]:
        side = "decoder" if case.side != "encoder" else "encoder"
        real = oracle.batch(case, padded=True)[f"{side}_segment_ids"] != 0
        four, five = (np.array(found[version]["models"][case.name]["scores"]) for version in VERSIONS)
        for other, scores in {"5": five, "t2t": ours[case.name]}.items():
            if scores is None:
                continue
            first, second = (four[real], scores[real]) if four.shape[: real.ndim] == real.shape else (four, scores)
            if not np.allclose(first, second, atol=1e-4, rtol=1e-4):
                wrong[case.name, other] = np.abs(first - second).max()
    assert wrong == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_tokenizers(opened, version):
    found, kinds = opened[0][version], opened[2]
    texts = lines.comparable(2000)
    assert len(texts) == 2000
    for name, kind in kinds.items():
        answer = found["tokenizers"][name]
        assert answer["ids"] == kind.encode_batch(texts)
        assert answer["class"] == ("TokenizersBackend" if version == "5" else "PreTrainedTokenizerFast")  # its new name
        assert answer["pair"] == [*kind.encode("a text"), 1, *kind.encode("another"), 1]
        assert answer["keys"] == ["attention_mask", "input_ids"]
        assert answer["decoded"] == "Hello, world."
        assert answer["size"] == kind.size


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
