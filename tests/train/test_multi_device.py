"""Every architecture gives the loss and gradients of one device on eight, on any mesh, and leaves the same memory."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t import heads, models, objectives, sharding
from t2t.config import Mesh
from t2t.families import transfo_xl, xlnet
from t2t.models import base
from t2t.nn.heads import LanguageModelHead
from t2t.objectives.base import Objective, Recurrent
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.objectives.permutation import PermutationLanguageModeling
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train import zero
from t2t.train.state import init_state, state_shardings
from t2t.train.step import make_train_step
from t2t.types import Batch
from tests.models import electra_tiny, tiny

pytestmark = [pytest.mark.multi_device, pytest.mark.slow]

ROWS, LENGTH, ENCODER_LENGTH, PREDICTIONS = 16, 8, 16, 3
EVEN = {"dim": 16, "d_model": 16, "d_ff": 16, "num_heads": 4, "head_dim": 6, "num_layers": 2, "vocab_size": 40}
"""Sizes that eight devices can share."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """What is trained on what."""

    models: Mapping[str, base.Network]
    objective: Objective
    batch: Batch
    draws: bool = False
    """Whether the objective draws samples, of which each micro-batch has its own: then the batch stays whole."""


def case(config: Any, objective: Objective, **batch: np.ndarray) -> Case:
    return Case(models={"model": base.Network(config)}, objective=objective, batch=batch)


def evened(config: Any) -> Any:
    """The config with every size replaced by an even one, wherever it stands."""
    if isinstance(config, tuple):
        return tuple(evened(item) for item in config)
    if not dataclasses.is_dataclass(config):
        return config
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    changed = {name: EVEN[name] if name in EVEN and value else evened(value) for name, value in fields.items()}
    return dataclasses.replace(config, **changed)


def odd_vocabulary(config: Any) -> Any:
    """As that of GPT-2, which no number of devices divides."""
    return dataclasses.replace(config, embed=dataclasses.replace(config.embed, vocab_size=tiny.VOCAB_SIZE))


def drawn(columns: int, *, below: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, below, (ROWS, columns)).astype(np.int32)


def weights(columns: int) -> np.ndarray:
    """Rows of weight 0, of some, and of more, so that every device has another share of the loss."""
    return (np.random.default_rng(1).uniform(0, 1, (ROWS, columns)) * (np.arange(ROWS) % 3)[:, None]).astype(np.float32)


def decoded(config: Any, objective: Objective) -> Case:
    """A model that learns the next token; the last rows end in padding."""
    segments = (np.arange(LENGTH) < np.where(np.arange(ROWS) < 12, LENGTH, 4)[:, None]).astype(np.int32)
    batch = tiny.batch(config, rows=ROWS, length=LENGTH, encoder_length=ENCODER_LENGTH)
    batch["decoder_segment_ids"] = segments
    targets = drawn(LENGTH, below=tiny.VOCAB_SIZE)
    return case(
        config, objective, **batch, decoder_target_tokens=targets, decoder_loss_weights=weights(LENGTH) * segments
    )


def predicted(config: Any, objective: Objective, **more: np.ndarray) -> Case:
    """An encoder that learns the tokens of some positions."""
    columns = np.tile(np.arange(LENGTH, dtype=np.int32), (ROWS, 1))
    found = {
        "positions": np.random.default_rng(1).permuted(columns, axis=1)[:, :PREDICTIONS],
        "targets": drawn(PREDICTIONS, below=tiny.VOCAB_SIZE),
        "weights": weights(PREDICTIONS),
    }
    batch = tiny.batch(config, rows=ROWS, length=LENGTH) | {f"encoder_predict_{k}": v for k, v in found.items()}
    return case(config, objective, **batch, **more)


def permuted() -> Case:
    config = xlnet.xlnet(
        num_layers=2, d_model=16, num_heads=4, d_ff=16, vocab_size=40, memory_length=5, memory_reuse=4, dropout=0.0
    )
    config = dataclasses.replace(config, head=LanguageModelHead(use_bias=True))
    orders = np.random.default_rng(2).permuted(np.tile(np.arange(LENGTH), (ROWS, 1)), axis=1)
    more = {
        "permutation_mask": (orders[:, None, :] >= orders[:, :, None]).astype(np.int8),
        "encoder_segment_ids": np.ones((ROWS, LENGTH), np.int32),
    }
    return predicted(config, PermutationLanguageModeling(), **more)


def recurrent() -> Case:
    config = transfo_xl.transfo_xl(
        num_layers=2, d_model=32, num_heads=4, head_dim=3, d_ff=16, vocab_size=37, cutoffs=(8, 20), divisor=2,
        memory_length=5, dropout=0.0,
    )  # fmt: skip
    made = decoded(transfo_xl.with_head(config, heads.PRETRAINING), LanguageModeling())
    return dataclasses.replace(made, batch=made.batch | {"decoder_segment_ids": np.ones((ROWS, LENGTH), np.int32)})


def pair() -> Case:
    """ELECTRA's two models; each row ends in padding."""
    first, second = (electra_tiny.batches(seed)[0] for seed in range(2))
    batch = {name: np.concatenate([first[name], second[name]]) for name in first}
    wide = {name for name, value in batch.items() if value.shape[1] == electra_tiny.LENGTH}
    batch |= {name: np.pad(batch[name], [(0, 0), (0, 16 - electra_tiny.LENGTH)]) for name in wide}
    networks = electra_tiny.pair().networks()
    objective = ReplacedTokenDetection(mask_id=electra_tiny.MASK)
    return Case(models=networks, objective=objective, batch=batch, draws=True)


CASES = {
    "encoder": lambda: predicted(evened(tiny.local_encoder()), MaskedLanguageModeling(z_loss=1e-3)),
    "sentence_pairs": lambda: predicted(
        evened(tiny.bert()), SentencePairModeling(), next_sentence_labels=np.arange(ROWS, dtype=np.int32) % 2
    ),
    "decoder": lambda: decoded(odd_vocabulary(evened(tiny.gpt2())), LanguageModeling(z_loss=1e-3, logits_chunk=4)),
    "decoder_by_distance": lambda: decoded(evened(tiny.windowed()), LanguageModeling()),
    "prefix_lm": lambda: decoded(evened(tiny.prefix_lm()), LanguageModeling(z_loss=1e-3)),
    "encoder_decoder": lambda: decoded(evened(tiny.t5(version="1.1")), LanguageModeling(label_smoothing=0.1)),
    "two_stream": permuted,
    "recurrent": recurrent,
    "pair": pair,
}
ON_ONE_MESH = {"sentence_pairs": "all but sequence, remat dots_no_batch", "decoder_by_distance": "tensor and sequence"}
"""Cases that differ from an architecture above in little; the others are tried on every mesh."""
TABLE = {
    "data, zero": (Mesh(zero=True), {}),
    "fsdp, remat dots": (Mesh(data=1, fsdp=8), {"remat": "dots"}),
    "all but sequence, remat dots_no_batch": (Mesh(data=2, fsdp=2, tensor=2), {"remat": "dots_no_batch"}),
    "fsdp and tensor, micro-batches": (Mesh(data=1, fsdp=4, tensor=2), {"micro_batches": 2}),
    "tensor and sequence": (Mesh(data=1, tensor=2, sequence=4), {}),
    "sequence, remat full": (Mesh(data=1, sequence=8), {"remat": "full"}),
    "slices, fsdp, sequence, zero": (Mesh(data=2, fsdp=2, sequence=2, slices=2, zero=True), {"micro_batches": 2}),
}


def keep_gradients() -> optax.GradientTransformation:
    """Moves nothing; its state are the gradients, which live where an optimizer's state lives."""
    return optax.GradientTransformation(
        lambda params: jax.tree.map(jnp.zeros_like, params),
        lambda gradients, state, params: (jax.tree.map(jnp.zeros_like, gradients), gradients),
    )


@functools.cache
def two_steps(name: str, sizes: Mesh, devices: int, remat: str | None = None, micro_batches: int = 1) -> Any:
    """Metrics, gradients and carry after each of two steps, of which the second reads the memory of the first."""
    made = CASES[name]()
    micro_batches = 1 if made.draws else micro_batches
    networks = {role: dataclasses.replace(network, remat=remat) for role, network in made.models.items()}
    axes = {role: network.logical_axes() for role, network in networks.items()}
    # Halved, so that no softmax is sharp: it would magnify rounding.
    params = {role: jax.tree.map(lambda x: x / 2, tiny.random_like(net.shapes())) for role, net in networks.items()}
    mesh = sharding.make_mesh(sizes, devices=jax.devices()[:devices])
    optimizer, carry, carry_axes = keep_gradients(), (), None
    if sizes.zero:
        optimizer = zero.divide(optimizer, zero.shardings(params, axes, mesh))
    if isinstance(made.objective, Recurrent):
        carry = made.objective.initial_carry(networks, rows=ROWS, micro_batches=micro_batches)
        carry_axes = made.objective.carry_axes(carry)
    state = init_state(params, optimizer, carry=carry)
    where = state_shardings(state, axes, mesh, carry_axes=carry_axes, zero=sizes.zero)
    step = make_train_step(
        made.objective, networks, optimizer, seed=0, micro_batches=micro_batches, state_shardings=where
    )
    found = []
    with sharding.use_mesh(mesh):
        state = jax.device_put(state, where)
        for _ in range(2 if jax.tree.leaves(carry) else 1):
            state, metrics = step(state, sharding.shard_batch(made.batch, mesh))
            found.append(jax.device_get({"metrics": metrics, "gradients": state.opt_state}))
    return found


@pytest.mark.parametrize(
    ("name", "entry"),
    [(name, entry) for name in CASES for entry in TABLE if ON_ONE_MESH.get(name, entry) == entry],
)
def test_loss_and_gradients_are_those_of_one_device(name, entry):
    """Within 1e-5 of the largest gradient, and of each metric."""
    sizes, options = TABLE[entry]
    expected = two_steps(name, Mesh(), 1)
    for found, want in zip(two_steps(name, sizes, 8, **options), expected, strict=True):
        for metric, (total, weight) in want["metrics"].items():
            np.testing.assert_allclose(found["metrics"][metric][0], total, rtol=1e-5, atol=1e-6, err_msg=metric)
            np.testing.assert_allclose(found["metrics"][metric][1], weight, rtol=1e-6, err_msg=metric)
        largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(want["gradients"]))
        assert largest > 0
        for (path, leaf), one in zip(
            jax.tree_util.tree_flatten_with_path(found["gradients"])[0],
            jax.tree.leaves(want["gradients"]),
            strict=True,
        ):
            np.testing.assert_allclose(leaf, one, rtol=0, atol=1e-5 * largest, err_msg=jax.tree_util.keystr(path))


def classes(package: Any, kind: Any) -> set[type]:
    """The classes defined in a package that look like the protocol."""
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)
    ]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__ and value is not kind
        and all(hasattr(value, name) for name in dir(kind) if not name.startswith("_"))
    }  # fmt: skip


def test_no_architecture_and_no_objective_is_forgotten():
    made = [make() for make in CASES.values()]
    assert classes(models, base.Config) == {type(n.config) for one in made for n in one.models.values()}
    assert classes(objectives, Objective) == {type(one.objective) for one in made}
