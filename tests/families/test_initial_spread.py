"""Fresh parameters are distributed as those of a fresh model of transformers, but where a paper says otherwise."""

import re

import jax
import numpy as np
import pytest
from flax import traverse_util

from t2t.hf import load
from t2t.models import base
from tests import cases
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

SPREADS = cases.said("SPREADS", {})
CASES = [case for case in cases.first_of_each(oracle.CASES, cases.by_family) if SPREADS[case.family] is not None]
QUICK = ("bert", "t5", "gptj", "opt")


def fresh(case, directory) -> dict[str, np.ndarray]:
    """Parameters that transformers has drawn, by our names."""
    import torch
    import transformers

    torch.manual_seed(0)
    architecture = getattr(transformers, case.architecture)
    architecture(architecture.config_class(**case.config)).save_pretrained(directory)
    return traverse_util.flatten_dict(load.open_directory(directory).params(), sep="/")


def marked() -> list:
    marks = {True: [], False: [pytest.mark.nightly]}
    return [pytest.param(case, id=case.name, marks=marks[case.family in QUICK]) for case in CASES]


@pytest.mark.parametrize("case", marked())
def test_spread(case, tmp_path):
    theirs = fresh(case, tmp_path)
    config = load.open_directory(tmp_path).config
    ours = traverse_util.flatten_dict(jax.jit(base.Network(config).init)(jax.random.key(0)), sep="/")
    papers = SPREADS[case.family]
    wrong = {}
    for name, leaf in theirs.items():
        leaf, mine = np.asarray(leaf, np.float64), np.asarray(ours[name], np.float64)
        if leaf.std() < 1e-9 or mine.std() < 1e-9:
            if not np.allclose(leaf, mine):
                wrong[name] = (mine.mean(), leaf.mean())
            continue
        law = next((law for pattern, law in papers.items() if re.fullmatch(pattern, name)), None)
        expected = leaf.std() if law is None else law(case.config)
        # Five standard errors of the logarithm of a spread, of both where both are drawn.
        if abs(np.log(mine.std() / expected)) > 5 * ((2 if law is None else 1) / 2 / leaf.size) ** 0.5:
            wrong[name] = (mine.std(), expected)
    assert wrong == {}
