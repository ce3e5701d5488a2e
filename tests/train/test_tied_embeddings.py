"""A tied output is one table with the embedding from the first step to the exported file; an untied one is another."""

import dataclasses
import json

import jax
import numpy as np
import pytest
import safetensors.numpy

import t2t
from t2t.nn.heads import LanguageModelHead
from t2t.train import loop
from tests.train import tiny_run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_training_resuming_and_export_keep_it_so(tied, tmp_path):
    model = dataclasses.replace(tiny_run.model(), head=LanguageModelHead(tied=tied, scale_by_width=tied))
    settings = {"model": model, "evaluate": {"tasks": ()}, "checkpoint": {"every": 2}}
    tables = []
    for steps in (2, 4):  # the second goes on from the checkpoint of the first
        state = loop.train(tiny_run.experiment(train={"steps": steps, "log_every": 2}, **settings), tmp_path / "run")
        assert ("head" in state.params["model"]) is not tied
        tables.append(np.asarray(state.params["model"]["embed"]["embedding"]))
    assert (tables[0] != tables[1]).any()
    _check_export(t2t.load(tmp_path / "run"), tables[1], tied=tied, directory=tmp_path / "exported")


def _check_export(run: t2t.Model, table: np.ndarray, *, tied: bool, directory) -> None:
    """The table and, where there is one, the output's own are stored once each, and read by who read them before."""
    output = table if tied else np.asarray(run.params["head"]["kernel"]).T
    np.testing.assert_array_equal(run.params["embed"]["embedding"], table)
    assert tied == np.array_equal(output, table)
    run.export(directory)
    held = safetensors.numpy.load_file(directory / "model.safetensors")
    named = {"shared.weight": table} | ({} if tied else {"lm_head.weight": output})
    assert {name for name, tensor in held.items() if tensor.shape == table.shape} == set(named)
    for name, expected in named.items():
        np.testing.assert_array_equal(held[name], expected)
    assert json.loads((directory / "config.json").read_text())["tie_word_embeddings"] is tied
    again = t2t.load(directory)
    jax.tree.map(np.testing.assert_array_equal, again.params, run.params)
    batch = {f"{side}_input_tokens": np.arange(3, 15, dtype=np.int32).reshape(2, 6) for side in ("encoder", "decoder")}
    found = again.apply(batch)
    scale = table.shape[1] ** -0.5 if tied else 1.0
    np.testing.assert_allclose(found.logits, np.asarray(found.last_hidden) @ output.T * scale, atol=1e-4)
