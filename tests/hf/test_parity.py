"""Logits and every hidden state equal transformers' for models that it saved and we read, and the other way round."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

from t2t import families
from t2t.hf import export, load
from t2t.models import base
from tests.cases import marked
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]


@pytest.fixture(scope="module", params=marked(oracle.CASES))
def case(request) -> oracle.Case:
    return request.param


@pytest.fixture(scope="module")
def theirs(case, tmp_path_factory):
    """A model of transformers, the directory it writes, and our reading of it."""
    model = oracle.build(case)
    directory = oracle.save(model, tmp_path_factory.mktemp("theirs"))
    checkpoint = load.open_directory(directory)
    return model, checkpoint.config, checkpoint.params()


@functools.cache
def _compiled(config):
    """One program for all tests of a case, which differ in values alone."""
    return jax.jit(lambda params, batch: base.Network(config).apply(params, batch, hidden_states=True))


def _ours(config, params, arrays):
    return _compiled(config)(jax.tree.map(jnp.asarray, params), arrays)


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
def test_import_computes_what_transformers_computes(case, theirs, padded):
    model, config, params = theirs
    arrays = oracle.batch(case, padded=padded)
    oracle.assert_equal(_ours(config, params, arrays), oracle.outputs(case, model, arrays), arrays)


def test_import_reads_every_parameter(case, theirs):
    model, config, _ = theirs
    theirs = sum(p.numel() for name, p in model.named_parameters() if name not in case.unread)
    assert base.count_parameters(config) == theirs


def _scoring_cases():
    """The classes with a head first: their gradients pass through every parameter."""
    cases = sorted(oracle.CASES, key=lambda case: case.architecture.endswith("Model"))
    return marked(cases, by=lambda case: case.name.split("-")[0])


@pytest.mark.parametrize("case", _scoring_cases())
def test_gradients_are_those_of_transformers(case, tmp_path):
    """Of one random linear function of all scores, or of the last states where there is no head."""
    import torch

    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    config, params = opened.config, opened.params()
    arrays = oracle.batch(case, padded=False)
    given = oracle.run(case, model, arrays)
    names = [n for n in given if n.endswith("logits")] or ["hidden_states"]
    rng = np.random.default_rng(5)
    chosen = {n: given[n][-1] if isinstance(given[n], tuple) else given[n] for n in names}
    factors = {n: rng.normal(size=value.shape).astype(np.float32) for n, value in chosen.items()}
    model.zero_grad()
    sum((value * torch.tensor(factors[n])).sum() for n, value in chosen.items()).backward()

    def loss(params):
        output = base.Network(config).apply(params, arrays, hidden_states=True)
        found = {n: getattr(output, n) for n in names}
        found = {n: value[-1] if isinstance(value, tuple) else value for n, value in found.items()}
        return sum(jnp.sum(value * factors[n]) for n, value in found.items())

    gradients = jax.jit(jax.grad(loss))(jax.tree.map(jnp.asarray, params))
    ours = {path: np.asarray(g) for path, g in traverse_util.flatten_dict(gradients, sep="/").items()}
    family, _ = families.expressing(config)
    prefix = family.table.base
    bindings = {b.key.removeprefix(prefix): b for b in families.bindings(family, config)}
    tensors = {name.removeprefix(prefix): p.grad for name, p in model.named_parameters() if p.grad is not None}
    compared = set(bindings) & set(tensors)
    assert compared
    largest = max(tensors[key].abs().max().item() for key in compared)
    for key in compared:
        slots = bindings[key].slots
        mine = bindings[key].join([ours[s.path] if s.index is None else ours[s.path][s.index] for s in slots])
        other = tensors[key].numpy()
        # A key's bias has no gradient but rounding: below 1e-5 of the largest gradient nothing is compared.
        np.testing.assert_allclose(
            mine, other, atol=1e-3 * max(np.abs(other).max(), 1e-2 * largest), rtol=0, err_msg=key
        )


def test_export_opens_in_transformers_and_computes_the_same(case, theirs, tmp_path):
    import transformers

    _, config, params = theirs
    leaves = traverse_util.flatten_dict(params, sep="/")
    keys = jax.random.split(jax.random.key(1), len(leaves))
    # Near 1 for norms, which is also a fine value for everything else. T5's scores, which have no scale, make errors
    # of rounding of larger draws: at 0.3 transformers is 1.5e-4 from what it computes itself in float64.
    drawn = {
        p: np.asarray(jax.random.normal(k, v.shape)) * 0.2 + (p.endswith("scale"))
        for k, (p, v) in zip(keys, leaves.items(), strict=True)
    }
    params = traverse_util.unflatten_dict(drawn, sep="/")
    export.export(tmp_path, config=config, params=params)
    architecture = getattr(transformers, case.exported or case.architecture)
    model, info = architecture.from_pretrained(tmp_path, output_loading_info=True, attn_implementation="eager")
    problems = {name: found for name, found in info.items() if found}
    assert problems == {}
    arrays = oracle.batch(case, padded=True)
    oracle.assert_equal(_ours(config, params, arrays), oracle.outputs(case, model.eval(), arrays), arrays)


def test_export_of_an_import_writes_the_same_tensors(theirs, tmp_path):
    model, config, params = theirs
    export.export(tmp_path, config=config, params=params)
    again = load.open_directory(tmp_path)
    assert again.config == config
    jax.tree.map(np.testing.assert_array_equal, again.params(), params)


@pytest.mark.parametrize("case", marked(oracle.CASES, by=lambda case: case.name.split("-")[0]))
def test_a_row_of_padding_alone_stays_finite_in_half_precision(case, tmp_path):
    """transformers' masks add up to minus infinity there in bfloat16, and DeBERTa's cannot be held by it."""
    opened = load.open_directory(oracle.save(oracle.build(case), tmp_path))
    arrays = oracle.batch(case, padded=True)
    arrays |= {name: np.concatenate([array[:1] * 0, array[1:]]) for name, array in arrays.items() if "segment" in name}
    network = base.Network(opened.config, dtype=jnp.bfloat16)

    def loss(params):
        output = network.apply(params, arrays, hidden_states=True)
        found = [x for x in jax.tree.leaves(output) if jnp.issubdtype(x.dtype, jnp.floating)]
        return sum(jnp.square(x.astype(jnp.float32)).sum() for x in found)

    value, gradient = jax.jit(jax.value_and_grad(loss))(jax.tree.map(jnp.asarray, opened.params()))
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves((value, gradient)))
