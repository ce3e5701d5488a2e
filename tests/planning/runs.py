"""Runs of tiny models of every architecture, and whether the compiler for TPU is there."""

import dataclasses
import importlib.util
import sys
from typing import Any

import pytest
from models import tiny
from test_architecture import ROOT

from t2t import heads
from t2t.config import Data, Experiment, Mesh, Train
from t2t.families import xlnet
from t2t.models.two_stream import TwoStreamEncoderConfig
from t2t.nn.positions.absolute import LearnedPositions
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.objectives.permutation import PermutationLanguageModeling
from t2t.train.optimizer import Adafactor, AdamW, Constant, InverseSquareRoot

if (ROOT / ".libtpu").is_dir() and str(ROOT / ".libtpu") not in sys.path:
    sys.path.append(str(ROOT / ".libtpu"))

HAS_LIBTPU = importlib.util.find_spec("libtpu") is not None
needs_libtpu = pytest.mark.skipif(not HAS_LIBTPU, reason="libtpu is not installed: launch/test.sh puts it into .libtpu")

ADAM = AdamW(learning_rate=Constant(peak=1e-3), clip_norm=1.0)

RUNS: dict[str, tuple[Any, Any, Any, dict[str, int]]] = {
    "encoder": (tiny.bert(next_sentence=False), MaskedLanguageModeling(), ADAM, {"inputs": 16, "predictions": 3}),
    "decoder": (tiny.gpt2(), LanguageModeling(), ADAM, {"targets": 16}),
    "encoder-decoder": (
        tiny.t5(version="1.1"),
        LanguageModeling(z_loss=1e-4),
        Adafactor(learning_rate=InverseSquareRoot()),
        {"inputs": 24, "targets": 16},
    ),
    "prefix-lm": (tiny.prefix_lm(), LanguageModeling(), ADAM, {"inputs": 16, "targets": 8}),
    "permutation": (None, PermutationLanguageModeling(), ADAM, {"inputs": 16, "targets": 16, "predictions": 3}),
}
"""Model, objective, optimizer and lengths of each architecture."""


def experiment(architecture: str, **parts: dict[str, Any]) -> Experiment:
    """A run of a tiny model; `parts` change fields of its data, train and mesh."""
    model, objective, optimizer, lengths = RUNS[architecture]
    if model is None:
        model = permutation_model()
    if "targets" not in lengths:
        lengths = lengths | {"targets": lengths["inputs"]}
    return Experiment(
        name=architecture,
        model=model,
        data=Data(train="none", lengths=lengths, **{"batch_size": 16} | parts.get("data", {})),
        objective=objective,
        optimizer=optimizer,
        train=Train(**{"steps": 10} | parts.get("train", {})),
        mesh=Mesh(**parts.get("mesh", {})),
    )


def permutation_model() -> TwoStreamEncoderConfig:
    """XLNet with a memory."""
    bare = xlnet.xlnet(
        num_layers=2, d_model=16, num_heads=4, d_ff=24, vocab_size=61, memory_length=12, memory_reuse=8, dropout=0.0
    )
    return xlnet.with_head(bare, heads.PRETRAINING)


def wide_decoder(*, batch_size: int = 512) -> Experiment:
    """A decoder of two layers whose logits fill the memory of a chip."""
    model = tiny.gpt2()
    stack = dataclasses.replace(model.stack, num_layers=2, d_model=128)
    embed = dataclasses.replace(model.embed, vocab_size=8192, dim=128, position=LearnedPositions(max_positions=512))
    base = experiment("decoder", data={"batch_size": batch_size})
    return dataclasses.replace(
        base,
        model=dataclasses.replace(model, embed=embed, stack=stack),
        data=dataclasses.replace(base.data, lengths={"targets": 512}),
    )
