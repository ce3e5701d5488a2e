"""Every family, found by looking: its presets, its tables read both ways, and what its models must never do."""

import ast
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

import t2t
from t2t import families, heads
from t2t.hf import config_map, export, load
from t2t.models import base
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.heads import MaskedLanguageModelHead, VocabularyHead
from t2t.nn.positions.rotary import Rotary
from t2t.nn.stack import StackConfig
from tests import cases

SIZES = {"vocab_size": 53, "d_model": 24, "dim": 24, "d_ff": 96, "num_heads": 4, "head_dim": 6, "num_layers": 3,
         "max_positions": 40, "window": 3}  # fmt: skip
NARROW = 12
"""`dim` of tables, and of a head, that is narrower than the model."""
ROTARY_DIM = 4
FAMILIES = tuple(families.all_families().values())


def shrink(config: Any) -> Any:
    """The same model at sizes that all differ."""
    if isinstance(config, tuple):
        return tuple(shrink(item) for item in config)
    if not dataclasses.is_dataclass(config):
        return config
    if isinstance(config, Rotary):
        return dataclasses.replace(config, dim=config.dim and ROTARY_DIM)
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    sizes = {name: size for name, size in SIZES.items() if fields.get(name) is not None}
    if "dim" in sizes and (isinstance(config, MaskedLanguageModelHead) or "d_model" in sizes):
        sizes["dim"] = NARROW
    if isinstance(config, EmbedConfig) and config.scale != 1.0:
        sizes["scale"] = SIZES["d_model"] ** 0.5
    if isinstance(config, StackConfig):
        around, period = len(config.prefix) + len(config.suffix), len(config.pattern)
        sizes["num_layers"] = around + period * max(1, -(-(SIZES["num_layers"] - around) // period))
    return dataclasses.replace(config, **{name: sizes.get(name, shrink(value)) for name, value in fields.items()})


def models(requests: Sequence[heads.Head | None]) -> list[Any]:
    """One tiny model for every family and each of these heads that it has, all but the first of a family nightly."""
    found = []
    for family in FAMILIES:
        config, marks = shrink(next(iter(family.presets.values()))()), []
        for head in requests:
            try:
                model = family.with_head(config, head)
            except ValueError:
                continue
            found.append(pytest.param(model, id=f"{family.model_type}-{head and head!r}", marks=marks))
            marks = [pytest.mark.nightly]
    return found


CLASSIFIED = {case.family for case in cases.all_cases() if case.architecture.endswith("ForSequenceClassification")}
"""Families of which transformers has a class that classifies texts."""
MODELS = models((heads.PRETRAINING, heads.MaskedLM(), None))
DRAWN = jax.random.key(3)


def drawn_params(config: Any) -> Any:
    """Parameters of which none is 0 or 1, biases and norms included."""
    leaves = traverse_util.flatten_dict(base.Network(config).shapes(), sep="/")
    keys = jax.random.split(DRAWN, len(leaves))
    drawn = {p: 0.3 * jax.random.normal(k, v.shape) for k, (p, v) in zip(keys, leaves.items(), strict=True)}
    return traverse_util.unflatten_dict({p: v + p.endswith("scale") for p, v in drawn.items()}, sep="/")


LENGTH = 13


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """A config, parameters, and what they make of two rows of tokens: one shape, so one compilation for all tests."""
    config = request.param
    network, params = base.Network(config), drawn_params(config)
    sides = sorted({key.partition("_")[0] for key in config.example()})
    apply = jax.jit(lambda batch: network.apply(params, batch, hidden_states=True))

    def run(tokens: np.ndarray, segments: np.ndarray, **changed: np.ndarray) -> base.Output:
        arrays = {"input_tokens": tokens, "segment_ids": segments}
        batch = {f"{side}_{name}": array.astype(np.int32) for side in sides for name, array in arrays.items()}
        return apply(batch | changed)

    return config, params, run


def result(output: base.Output) -> np.ndarray:
    return np.asarray(output.last_hidden if output.logits is None else output.logits)


def tokens_of(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(2, SIZES["vocab_size"], shape).astype(np.int32)


def test_every_family_has_a_file_of_cases():
    assert set(cases.said("CASES")) == set(families.all_families())
    names = [case.name for case in cases.all_cases()]
    assert len(names) == len(set(names))


def test_two_thirds_of_the_families_add_no_module():
    """A family is a wiring of what others read too; a module is added for one where fewer than three import it."""
    readers: dict[str, set[str]] = {}
    for file in Path(families.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith(("t2t.nn", "t2t.models")):
                readers.setdefault(node.module, set()).add(file.stem)
    adding = set().union(*(read_by for read_by in readers.values() if len(read_by) < 3)) - {"__init__"}
    assert 3 * len(adding) <= len(FAMILIES), adding


def test_names_are_unique_and_listed():
    names = [name for family in FAMILIES for name in family.presets]
    assert sorted(names) == sorted(set(names)) == sorted(families.presets()) == sorted(t2t.presets())


def test_an_unknown_preset_names_near_ones():
    with pytest.raises(ValueError, match="did you mean .*t5-base"):
        families.preset("t5-basee")


def test_a_head_that_a_family_lacks_is_refused():
    with pytest.raises(ValueError, match="has no head MaskedLM"):
        families.preset("t5-small", head=heads.MaskedLM())


def test_config_json_comes_back_as_the_same_config(model):
    config, *_ = model
    family, attributes = families.expressing(config)
    names = {n.removeprefix(family.table.base) for b in families.bindings(family, config) for n in b.written}
    values = family.attributes.values({**attributes, "model_type": family.model_type})
    assert config_map.differences(config, family.from_hf(values, frozenset(names))) == []


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_type)
def test_labels_and_what_they_are_come_back(family):
    request = heads.SequenceClassification(
        num_labels=3, labels=("no", "maybe", "yes"), problem_type="multi_label_classification"
    )
    config = next(iter(family.presets.values()))()
    if family.model_type not in CLASSIFIED:
        with pytest.raises(ValueError, match="has no head SequenceClassification"):
            family.with_head(config, request)
        return
    config = family.with_head(config, request)
    found, attributes = families.expressing(config)
    assert attributes["problem_type"] == "multi_label_classification"
    assert attributes["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    names = {n.removeprefix(found.table.base) for b in families.bindings(found, config) for n in b.written}
    values = found.attributes.values({**attributes, "model_type": found.model_type})
    assert config_map.differences(config, found.from_hf(values, frozenset(names))) == []


@pytest.mark.nightly
def test_every_preset_can_be_exported():
    for family in FAMILIES:
        for name, make in family.presets.items():
            assert families.expressing(make())[0] is family, name


def test_export_and_import_give_the_same_parameters(model, tmp_path):
    config, params, _ = model
    export.export(tmp_path, config=config, params=params)
    opened = load.open_directory(tmp_path)
    assert config_map.differences(opened.config, config) == []
    jax.tree.map(np.testing.assert_array_equal, opened.params(), params)


def test_padding_changes_nothing(model):
    *_, run = model
    tokens, other = tokens_of(0, 2, LENGTH), tokens_of(1, 2, LENGTH)
    real = np.arange(LENGTH)[None] < np.array([[9], [2]])
    zeros = result(run(np.where(real, tokens, 0), real))
    np.testing.assert_array_equal(result(run(np.where(real, tokens, other), real))[real], zeros[real])
    neighbours = result(run(np.where(real, tokens, other), np.where(real, 1, 2)))
    np.testing.assert_allclose(neighbours[real], zeros[real], atol=1e-5)


def test_padding_on_the_left_changes_nothing(model):
    """Positions are those of the text, in a plain forward pass too (huggingface/transformers#3021); a row of padding
    alone stays finite (huggingface/transformers#31035)."""
    *_, run = model
    tokens, lengths = tokens_of(8, 2, LENGTH), np.array([[9], [2]])
    right, left = np.arange(LENGTH) < lengths, np.arange(LENGTH) >= LENGTH - lengths
    moved = np.zeros_like(tokens)
    moved[left] = tokens[right]
    expected = result(run(np.where(right, tokens, 0), right))
    # Keys at other places are summed in another order. Where logits reach 8, rounding each parameter once moves them by
    # 2e-5: what differs is told in parts of the largest.
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(result(run(moved, left))[left] / size, expected[right] / size, atol=1e-5)
    assert np.isfinite(result(run(np.zeros_like(tokens), np.zeros_like(left)))).all()


def test_a_token_with_the_number_of_padding_is_read_like_any_other(model):
    """Padding may be the end token, so it is never told by its number (huggingface/transformers#17426)."""
    *_, run = model
    tokens, real = tokens_of(9, 2, LENGTH), np.ones((2, LENGTH))
    found = []
    for token in (0, 1):
        tokens[:, 3] = token
        found.append(result(run(tokens, real))[:, -1])
    assert (np.abs(found[0] - found[1]).reshape(2, -1).max(axis=1) > 1e-5).all()


def test_packed_examples_equal_single_ones(model):
    *_, run = model
    tokens = tokens_of(2, 2, LENGTH)
    first, second = np.arange(LENGTH) < 7, np.arange(LENGTH) >= 7
    packed = result(run(tokens, np.where(first, 1, 2)[None].repeat(2, axis=0)))[0]
    alone = np.stack([np.where(first, tokens[0], 0), np.roll(np.where(second, tokens[0], 0), -7)])
    segments = np.stack([first, np.roll(second, -7)])
    single = result(run(alone, segments))
    expected = np.concatenate([single[0, :7], single[1, :6]])
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(packed / size, expected / size, atol=1e-5)


def test_who_reads_whom(model):
    """Every token of its example, and decoders those before it: a state changes with what it may read and no other.

    The pictures are in tests/models/test_mask_laws.py.
    """
    config, _, run = model
    tokens, segments = tokens_of(4, 1, LENGTH)[[0, 0]], np.array([[1] * 6 + [2] * 5 + [0] * 2] * 2)
    sides = sorted({key.partition("_")[0] for key in config.example()})
    before = np.asarray(run(tokens, segments).last_hidden)
    same = (segments[0][:, None] == segments[0][None]) & (segments[0] != 0)
    for side in sides:
        found = np.zeros((LENGTH, LENGTH), bool)
        for places in np.arange(LENGTH + 1).reshape(-1, 2):  # a row for each
            changed = np.where(np.arange(LENGTH) == places[:, None], tokens % 50 + 3, tokens).astype(np.int32)
            after = run(tokens, segments, **{f"{side}_input_tokens": changed}).last_hidden
            for row, place in enumerate(places[places < LENGTH]):
                found[:, place] = (np.asarray(after)[row] != before[row]).any(axis=-1)
        is_causal = side == "decoder"
        np.testing.assert_array_equal(found[segments[0] != 0], (np.tril(same) if is_causal else same)[segments[0] != 0])


def test_hidden_states_are_the_embeddings_and_one_for_each_block(model):
    config, _, run = model
    output = run(tokens_of(5, 2, LENGTH), np.ones((2, LENGTH)))
    stack = config.decoder if isinstance(config, EncoderDecoderConfig) else config.stack
    assert len(output.hidden_states) == stack.num_layers + 1
    np.testing.assert_array_equal(output.hidden_states[-1], output.last_hidden)


def test_with_dropout_changes_every_rate_and_nothing_else(model):
    config, *_ = model
    changed = families.with_dropout(config, 0.25)
    assert config_map.differences(config, changed) == []
    rates = [line for line in repr(changed).split("dropout=")[1:] if not line.startswith("0.25")]
    assert rates == []


@pytest.mark.slow
def test_fresh_models_start_near_the_uniform_distribution(model):
    config, *_ = model
    if not isinstance(config.head, VocabularyHead):
        pytest.skip("does not score the vocabulary")
    sides = ["encoder", "decoder"] if isinstance(config, EncoderDecoderConfig) else ["decoder", "encoder"]
    tokens = tokens_of(6, 2, LENGTH)
    batch = {f"{side}_input_tokens": tokens for side in sides}
    network = base.Network(config)
    logits = jax.jit(lambda key: network.apply(network.init(key), batch).logits)(jax.random.key(0))
    # Other tokens than those read: a model whose output is its embedding guesses its own input well from the start.
    targets = jnp.asarray(tokens_of(7, 2, LENGTH)[..., None])
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets, axis=-1).mean()
    assert float(loss) < np.log(SIZES["vocab_size"]) + 1.5
