"""Fresh parameters are distributed as those of a fresh model of transformers, but where a paper says otherwise."""

import itertools
import re

import jax
import numpy as np
import pytest
from flax import traverse_util

from t2t.hf import load
from t2t.models import base
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

CASES = [
    next(group)
    for name, group in itertools.groupby(oracle.CASES, key=lambda case: case.name.split("-")[0])
    if name != "mt5"  # transformers draws it tied, which t2t does not read
]
QUICK = ("bert", "t5", "gptj", "opt")
CUT = 0.87962566  # standard deviation of a normal distribution cut at two of its own
PAPERS = {
    # Published code draws from tf.truncated_normal_initializer.
    "bert": {".*": lambda c: 0.02 * CUT},
    "electra": {".*": lambda c: 0.02 * CUT},
    # arXiv:2211.05100: as Megatron-LM, which scales the projections into the residual stream.
    "bloom": {".*(out|down)/kernel": lambda c: 0.02 * (2 * c["n_layer"]) ** -0.5},
    # arXiv:2204.06745, section 2.1.3.
    "gpt_neox": {
        ".*(out|down)/kernel": lambda c: 2 / c["num_hidden_layers"] / c["hidden_size"] ** 0.5,
        ".*": lambda c: (2 / 5 / c["hidden_size"]) ** 0.5,
    },
    # arXiv:2205.01068, section 2.2.
    "opt": {
        ".*(out|down)/kernel": lambda c: 0.006 * (2 * c["num_hidden_layers"]) ** -0.5,
        ".*": lambda c: 0.006,
    },
    # T5X draws biases of positions uniformly by the mean of both sizes.
    "umt5": {".*position/embedding": lambda c: (2 / (8 + c["num_heads"])) ** 0.5},
    # facebookresearch/XLM: normal with dim ** -0.5; transformers has that of 2048 dimensions for every size.
    "xlm": {"embed/.*": lambda c: c["emb_dim"] ** -0.5},
}


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
    return [pytest.param(case, id=case.name, marks=marks[case.name.split("-")[0] in QUICK]) for case in CASES]


@pytest.mark.parametrize("case", marked())
def test_spread(case, tmp_path):
    theirs = fresh(case, tmp_path)
    config = load.open_directory(tmp_path).config
    ours = traverse_util.flatten_dict(jax.jit(base.Network(config).init)(jax.random.key(0)), sep="/")
    papers = PAPERS.get(case.name.split("-")[0], {})
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
