"""Transformer-XL goes to transformers 4.57 and back: every tensor has its name and place, though its forward fails."""

import json

import jax
import numpy as np
import pytest

from t2t import heads
from t2t.families import transfo_xl
from t2t.hf import export, load
from tests.hf import tiny, version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "head_dim": 5, "d_ff": 14, "vocab_size": 37}
MODELS = {
    "falling": transfo_xl.transfo_xl(
        cutoffs=(8, 20), divisor=2, memory_length=6, same_length=True, max_distance=5, **SIZES
    ),
    "clusters": transfo_xl.transfo_xl(cutoffs=(8, 20), memory_length=4, **SIZES),
    "one": transfo_xl.transfo_xl(**SIZES),
}

OPEN = """
from transformers.models.deprecated.transfo_xl import modeling_transfo_xl as module
answer = {}
for name, (path, architecture) in given["models"].items():
    model, info = getattr(module, architecture).from_pretrained(path, output_loading_info=True)
    mine = {k: v.double().abs().sum().item() for k, v in model.state_dict().items()}
    model.save_pretrained(given["saved"] + "/" + name)
    answer[name] = {"problems": {k: sorted(map(str, v)) for k, v in info.items() if v}, "sums": mine}
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What 4.57 makes of our exports, and where it saved them again."""
    paths, saved = {}, tmp_path_factory.mktemp("saved")
    for name, config in MODELS.items():
        for head in (None, heads.PRETRAINING):
            config = transfo_xl.with_head(config, head)
            directory = tmp_path_factory.mktemp(name)
            export.export(directory, config=config, params=tiny.params(config))
            architecture = json.loads((directory / "config.json").read_text())["architectures"][0]
            paths[f"{name}-{architecture}"] = (str(directory), architecture)
    return version4.run(OPEN, models=paths, saved=str(saved)), paths, saved


@pytest.mark.parametrize("architecture", ["TransfoXLModel", "TransfoXLLMHeadModel"])
@pytest.mark.parametrize("name", MODELS)
def test_exports_open_and_come_back(opened, name, architecture):
    answer, paths, saved = opened
    key = f"{name}-{architecture}"
    assert answer[key]["problems"] == {}
    assert all(np.isfinite(value) for value in answer[key]["sums"].values())
    ours, theirs = load.open_directory(paths[key][0]), load.open_directory(saved / key)
    assert theirs.config == ours.config
    jax.tree.map(np.testing.assert_array_equal, theirs.params(), ours.params())


def test_an_export_says_where_it_opens(opened):
    _, paths, _ = opened
    from pathlib import Path

    assert "transformers 4.57" in (Path(paths["one-TransfoXLModel"][0]) / "README.md").read_text()
