"""Texts padded on the left are read alike, by models without absolute positions or with ones counted in the text."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.hf import load
from t2t.models import base
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]
NAMES = {"bloom", "bloom-sequence", "gpt_neox", "gpt_neox-sequence", "gptj", "modernbert", "opt", "opt-sequence"}


@pytest.mark.parametrize("case", [case for case in oracle.CASES if case.name in NAMES], ids=str)
def test_left_padding(case, tmp_path):
    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    arrays = {name: np.ascontiguousarray(x[:, ::-1]) for name, x in oracle.batch(case, padded=True).items()}
    params = jax.tree.map(jnp.asarray, opened.params())
    ours = jax.jit(lambda p, b: base.Network(opened.config).apply(p, b, hidden_states=True))(params, arrays)
    oracle.assert_equal(ours, oracle.outputs(case, model, arrays), arrays)
