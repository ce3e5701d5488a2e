"""A dry run: parameters, first batch, memory; nothing is written."""

import os

import pytest

from t2t.train import preview
from tests.train import tiny_run


@pytest.mark.slow
def test_it_shows_everything_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(preview.training(tiny_run.experiment(mesh={"data": 2, "fsdp": 2, "tensor": 2}), "run"))
    assert os.listdir(tmp_path) == []
    assert "model/embed/embedding" in text and "[384, 16]  ('tensor', 'fsdp')" in text
    assert "total" in text and "15,584" in text
    assert "encoder_input_tokens         int32 [8, 24]" in text
    assert "decoder_target_tokens, row 0, example 1: " in text
    assert "parameters             0." in text and "whole step, by XLA" in text
    assert "the step compiles in" in text
