"""The formula against the matrix products of the traced step, exactly, and against XLA's count."""

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

from t2t.models.base import Network
from t2t.nn.mask_decoder import MaskDecoderConfig
from t2t.nn.positions.absolute import LearnedPositions
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train import flops
from t2t.train.step import accumulate_gradients
from tests.models import tiny

B, TE, TD, K = 3, 10, 6, 2


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, np.int32)


DECODER = {f"decoder_{name}": shape(B, TD) for name in ("input_tokens", "target_tokens", "loss_weights")}
ENCODER = {"encoder_input_tokens": shape(B, TE)}
PREDICT = {f"encoder_predict_{name}": shape(B, K) for name in ("positions", "targets", "weights")}
WHOLE = {f"encoder_{name}": shape(B, TE) for name in ("target_tokens", "loss_weights")}


def decoding(config):
    """The model with a mask decoder."""
    decoder = MaskDecoderConfig(position=LearnedPositions(max_positions=16))
    return dataclasses.replace(config, head=dataclasses.replace(config.head, mask_decoder=decoder))


CASES = {
    "t5 1.0": (tiny.t5(), LanguageModeling(), ENCODER | DECODER),
    "t5 1.1": (tiny.t5(version="1.1"), LanguageModeling(), ENCODER | DECODER),
    "gpt2": (tiny.gpt2(), LanguageModeling(), DECODER),
    "prefix-LM": (tiny.prefix_lm(), LanguageModeling(), DECODER | {"decoder_causal_attention": shape(B, TD)}),
    "bert": (tiny.bert(next_sentence=False), MaskedLanguageModeling(), ENCODER | PREDICT),
    "mask decoder": (decoding(tiny.bert(next_sentence=False)), MaskedLanguageModeling(), ENCODER | PREDICT),
    "bert, all positions": (tiny.bert(next_sentence=False), MaskedLanguageModeling(), ENCODER | WHOLE),
}


def gradient(config, objective):
    network = Network(config)

    def run(params, batch):
        gradients, loss, _, _ = accumulate_gradients(
            objective, {"model": network}, {"model": params}, batch, frozen={}, key=None, carry=()
        )
        return gradients, loss

    return run, network.shapes()


@pytest.mark.parametrize("name", CASES)
def test_equals_the_products_of_the_program(name):
    config, objective, batch = CASES[name]
    run, shapes = gradient(config, objective)
    program = jax.make_jaxpr(run)(shapes, batch)
    assert flops.step_flops(shapes, batch, halve_causal=False) == products(program.jaxpr)


def products(jaxpr):
    """Operations of all dot_generals of a program, scans taken as often as they run."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            depth = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
            total += 2 * depth * math.prod(equation.outvars[0].aval.shape)
        times = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                total += times * products(getattr(inner, "jaxpr", inner))
    return total


def _is_program(x):
    return hasattr(x, "eqns") or hasattr(x, "jaxpr")


WIDTH, LENGTHS = 256, {"encoder": 144, "decoder": 128}


def written_out(stack):
    """A stack wide enough for products to dominate, without a scan over layers, whose body XLA counts once."""
    first = stack.pattern[0]
    heads = functools.partial(dataclasses.replace, num_heads=4, head_dim=64)
    block = dataclasses.replace(
        first,
        attention=heads(first.attention),
        cross_attention=None if first.cross_attention is None else heads(first.cross_attention),
        feed_forward=dataclasses.replace(first.feed_forward, d_ff=1024),
    )
    return dataclasses.replace(stack, d_model=WIDTH, prefix=(block,) * (stack.num_layers - 1), pattern=(block,))


def widened(config):
    """A config with its own wiring and realistic sizes."""
    embed = dataclasses.replace(config.embed, vocab_size=2048, dim=WIDTH)
    if embed.position is not None:
        position = dataclasses.replace(embed.position, max_positions=max(LENGTHS.values()))
        embed = dataclasses.replace(embed, position=position)
    names = [field.name for field in dataclasses.fields(config) if field.name in ("encoder", "decoder", "stack")]
    return dataclasses.replace(config, embed=embed, **{name: written_out(getattr(config, name)) for name in names})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "t5 1.1", "bert"])
def test_near_xlas_count(name):
    """XLA adds what is no matrix product."""
    config, objective, batch = CASES[name]
    batch = {key: shape(2, 24 if "predict" in key else LENGTHS[key.split("_")[0]]) for key in batch}
    run, shapes = gradient(widened(config), objective)
    counted = jax.jit(run).lower(shapes, batch).cost_analysis()["flops"]
    assert 1.0 < counted / flops.step_flops(shapes, batch, halve_causal=False) < 1.05


def test_causal_scores_are_halved():
    """By hand: one layer, 2 heads of 3, 5 tokens in each of 4 rows: 12 or 6 times 6 * 20 * 5."""
    query = {"query": {"kernel": np.zeros((7, 2, 3))}}
    params = {"decoder": {"prefix_0": {"attention": query}}, "head": {"kernel": np.zeros((7, 0))}}
    batch = {"decoder_input_tokens": np.zeros((4, 5))}
    kernels = 6 * 7 * 6 * 20
    assert flops.step_flops(params, batch) == kernels + 6 * 6 * 20 * 5
    assert flops.step_flops(params, batch, halve_causal=False) == kernels + 12 * 6 * 20 * 5


def test_peaks():
    class Device:
        def __init__(self, kind):
            self.device_kind = kind

    assert flops.peak_flops(Device("TPU v5 lite")) == 197e12
    assert flops.peak_flops(Device("TPU v5")) == 459e12
    assert flops.peak_flops(Device("NVIDIA H100 80GB HBM3")) == 989e12
    assert flops.peak_flops(Device("cpu")) is None
    # The fastest of many: one product alone may be interrupted for longer than it takes.
    assert 1e8 < flops.measured_peak_flops(size=128, repeats=50) < 1e14


def test_a_batch_without_tokens_is_refused():
    with pytest.raises(ValueError, match="neither encoder_input_tokens nor decoder_input_tokens"):
        flops.step_flops({}, {"labels": shape(2)})
