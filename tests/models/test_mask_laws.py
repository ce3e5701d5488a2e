"""Who may read whom, as one table of 0/1 matrices for every architecture.

Each row of a picture is a reader, each column what it may read. They are compared with who does: a state changes with
every token that its position may read, itself included, and with no other. Families are compared with their kind of
picture in tests/families/test_families.py.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.families import deberta, deberta_v2, gpt_neo, modernbert, transfo_xl, xlnet
from t2t.models.base import Network
from t2t.nn.memory import Memory
from tests.models import tiny

SEGMENTS = (1, 1, 1, 1, 2, 2, 2, 0)
"""Two packed examples and padding, which has no row, and whose column is 0 everywhere."""
READ_SEGMENTS = (1, 1, 2, 2, 2, 2, 0)
"""Of the encoder whose states a decoder reads."""
PREFIX = (1, 1, 1, 0, 1, 1, 0, 0)
"""Which positions are visible from both sides."""
ORDER = (2, 0, 3, 1, 1, 2, 0, 0)
"""The places of positions in a permuted order of each example."""
REMEMBERED = (False, True, True)
"""Which positions before the first token there were."""

ALL_OF_AN_EXAMPLE = """
    1 1 1 1 0 0 0 0
    1 1 1 1 0 0 0 0
    1 1 1 1 0 0 0 0
    1 1 1 1 0 0 0 0
    0 0 0 0 1 1 1 0
    0 0 0 0 1 1 1 0
    0 0 0 0 1 1 1 0
"""
WHAT_WAS_BEFORE = """
    1 0 0 0 0 0 0 0
    1 1 0 0 0 0 0 0
    1 1 1 0 0 0 0 0
    1 1 1 1 0 0 0 0
    0 0 0 0 1 0 0 0
    0 0 0 0 1 1 0 0
    0 0 0 0 1 1 1 0
"""
THE_PREFIX_AND_WHAT_WAS_BEFORE = """
    1 1 1 0 0 0 0 0
    1 1 1 0 0 0 0 0
    1 1 1 0 0 0 0 0
    1 1 1 1 0 0 0 0
    0 0 0 0 1 1 0 0
    0 0 0 0 1 1 0 0
    0 0 0 0 1 1 1 0
"""
NEIGHBOURS = """
    1 1 0 0 0 0 0 0
    1 1 1 0 0 0 0 0
    0 1 1 1 0 0 0 0
    0 0 1 1 0 0 0 0
    0 0 0 0 1 1 0 0
    0 0 0 0 1 1 1 0
    0 0 0 0 0 1 1 0
"""
THE_ONE_BEFORE = """
    1 0 0 0 0 0 0 0
    1 1 0 0 0 0 0 0
    0 1 1 0 0 0 0 0
    0 0 1 1 0 0 0 0
    0 0 0 0 1 0 0 0
    0 0 0 0 1 1 0 0
    0 0 0 0 0 1 1 0
"""
ALL_OF_THE_EXAMPLE_READ = """
    1 1 0 0 0 0 0
    1 1 0 0 0 0 0
    1 1 0 0 0 0 0
    1 1 0 0 0 0 0
    0 0 1 1 1 1 0
    0 0 1 1 1 1 0
    0 0 1 1 1 1 0
"""
ALL_OF_THE_ENCODERS_EXAMPLE = """
    1 1 0 0 0 0 0
    1 1 0 0 0 0 0
    0 0 1 1 1 1 0
    0 0 1 1 1 1 0
    0 0 1 1 1 1 0
    0 0 1 1 1 1 0
"""
NOTHING = "0 0 0 0 0 0 0 0\n" * 6
WHAT_WAS_BEFORE_IN_THE_ORDER = """
    1 1 0 1 0 0 0 0
    0 1 0 0 0 0 0 0
    1 1 1 1 0 0 0 0
    0 1 0 1 0 0 0 0
    0 0 0 0 1 0 1 0
    0 0 0 0 1 1 1 0
    0 0 0 0 0 0 1 0
"""
THE_SAME_WITHOUT_ITSELF = """
    0 1 0 1 0 0 0 0
    0 0 0 0 0 0 0 0
    1 1 0 1 0 0 0 0
    0 1 0 0 0 0 0 0
    0 0 0 0 0 0 1 0
    0 0 0 0 1 0 1 0
    0 0 0 0 0 0 0 0
"""
ALL_THAT_IS_REMEMBERED = "0 1 1\n" * 4
# Four tokens, each of which reads three positions.
AS_MANY_FOR_EACH = """
    1 0 0 0
    1 1 0 0
    1 1 1 0
    0 1 1 1
"""
THE_REST_IS_REMEMBERED = """
    0 1 1
    0 0 1
    0 0 0
    0 0 0
"""


def _first(picture: str) -> str:
    """What the four tokens of the first example read of each other."""
    return "\n".join("".join(line.split()[:4]) for line in picture.strip().splitlines()[:4])


SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "vocab_size": tiny.VOCAB_SIZE}
WIDE = {**SIZES, "d_ff": 14, "dropout": 0.0}
ONE = {"num_layers": 1}
MODERN = {**SIZES, "d_ff": 14, "local_attention": 2}
XLNET = xlnet.xlnet(**WIDE, memory_length=3)
TXL = {**WIDE, "head_dim": 5, "memory_length": 3}

LAWS: dict[str, tuple[Any, dict[str, str]]] = {
    "encoder": (tiny.bert(), {"tokens of tokens": ALL_OF_AN_EXAMPLE}),
    "convolved": (
        deberta_v2.convolved(deberta.deberta(**WIDE, max_distance=3)), {"tokens of tokens": ALL_OF_AN_EXAMPLE},
    ),
    "local": (
        modernbert.modernbert(**MODERN | ONE, layer_types=("sliding_attention",)), {"tokens of tokens": NEIGHBOURS},
    ),
    "local and global": (
        modernbert.modernbert(**MODERN, layer_types=("sliding_attention", "full_attention")),
        {"tokens of tokens": ALL_OF_AN_EXAMPLE},
    ),
    "decoder": (tiny.gpt2(), {"tokens of tokens": WHAT_WAS_BEFORE}),
    "local decoder": (
        gpt_neo.gpt_neo(**SIZES | ONE, layer_types=("local",), window_size=2), {"tokens of tokens": THE_ONE_BEFORE},
    ),
    "local and global decoder": (
        gpt_neo.gpt_neo(**SIZES, layer_types=("local", "global"), window_size=2), {"tokens of tokens": WHAT_WAS_BEFORE},
    ),
    "prefix-LM": (tiny.prefix_lm(), {"tokens of tokens": THE_PREFIX_AND_WHAT_WAS_BEFORE}),
    "encoder-decoder": (tiny.t5(), {
        "tokens of tokens": WHAT_WAS_BEFORE,
        "tokens of encoder": ALL_OF_THE_EXAMPLE_READ,
        "encoder of encoder": ALL_OF_THE_ENCODERS_EXAMPLE,
        "encoder of tokens": NOTHING,
    }),
    "two streams": (XLNET, {
        "tokens of tokens": WHAT_WAS_BEFORE_IN_THE_ORDER,
        "queries of tokens": THE_SAME_WITHOUT_ITSELF,
    }),
    "two streams with a memory": (XLNET, {
        "tokens of tokens": _first(WHAT_WAS_BEFORE_IN_THE_ORDER),
        "queries of tokens": _first(THE_SAME_WITHOUT_ITSELF),
        "tokens of memory": ALL_THAT_IS_REMEMBERED,
        "queries of memory": ALL_THAT_IS_REMEMBERED,
    }),
    "memory": (transfo_xl.transfo_xl(**TXL), {
        "tokens of tokens": _first(WHAT_WAS_BEFORE),
        "tokens of memory": ALL_THAT_IS_REMEMBERED,
    }),
    "memory of the same length": (transfo_xl.transfo_xl(**TXL | ONE, same_length=True), {
        "tokens of tokens": AS_MANY_FOR_EACH,
        "tokens of memory": THE_REST_IS_REMEMBERED,
    }),
}  # fmt: skip


def _matrix(picture: str) -> np.ndarray:
    return np.array([[int(place) for place in line.replace(" ", "")] for line in picture.strip().splitlines()])


def _batch(config: Any, law: dict[str, str]) -> dict[str, np.ndarray]:
    """One row: the packed examples, or with a memory the first of them."""
    length = 4 if "tokens of memory" in law else len(SEGMENTS)
    side = next(iter(config.example())).partition("_")[0] if "tokens of encoder" not in law else "decoder"
    segments = {side: SEGMENTS[:length]}
    if "tokens of encoder" in law:
        segments["encoder"] = READ_SEGMENTS
    batch = {f"{name}_segment_ids": np.array([ids], np.int32) for name, ids in segments.items()}
    batch |= {f"{name}_input_tokens": 1 + np.arange(len(ids), dtype=np.int32)[None] for name, ids in segments.items()}
    if getattr(config, "prefix_attention", False):
        batch["decoder_causal_attention"] = np.array([PREFIX], np.int32)
    if "queries of tokens" in law:
        order = np.array(ORDER[:length])
        batch["permutation_mask"] = (order[None, :] >= order[:, None]).astype(np.int32)[None]
        batch["encoder_predict_positions"] = np.arange(length, dtype=np.int32)[None]
    return batch


def _influence(config: Any, law: dict[str, str]) -> dict[str, np.ndarray]:
    """Reader and read -> whether the state of a reader changes with what is read; each change is a row of a batch."""
    batch = _batch(config, law)
    side = "decoder" if "decoder_input_tokens" in batch else "encoder"
    read = {"tokens": f"{side}_input_tokens"} | ({"encoder": "encoder_input_tokens"} if side == "decoder" else {})
    lengths = {name: batch[key].shape[1] for name, key in read.items() if key in batch}
    lengths |= {"memory": len(REMEMBERED)} if "tokens of memory" in law else {}
    changes = [(name, place) for name, length in lengths.items() for place in range(length)]
    rows = 1 + len(changes)
    batch = {name: np.repeat(array, rows, axis=0) for name, array in batch.items()}
    shape = (SIZES["num_layers"], rows, len(REMEMBERED), tiny.D_MODEL)
    states = np.random.default_rng(0).normal(size=(shape[0], 1, *shape[2:])).repeat(rows, axis=1).astype(np.float32)
    for row, (name, place) in enumerate(changes, start=1):
        if name == "memory":
            states[:, row, place] += np.arange(tiny.D_MODEL, dtype=np.float32)
        else:
            batch[read[name]][row, place] += 17
    memory = None
    if "memory" in lengths:
        layers = config.stack.num_layers
        memory = Memory(jnp.asarray(states[:layers]), jnp.asarray(np.tile(np.array(REMEMBERED), (rows, 1))))
    output = _hidden(config, batch, memory)
    readers = {"tokens": output.hidden_states[-1], "encoder": output.encoder_last_hidden}
    readers |= {"queries": None if output.query_hidden_states is None else output.query_hidden_states[-1]}
    found = {}
    for reader, state in readers.items():
        if state is not None:
            differs = np.abs(np.asarray(state) - np.asarray(state)[:1]).max(axis=-1)[1:] > 1e-5
            for name in lengths:
                columns = [row for row, (changed, _) in enumerate(changes) if changed == name]
                found[f"{reader} of {name}"] = differs[columns].T.astype(int)
    return found


def _hidden(config: Any, batch: dict[str, np.ndarray], memory: Memory | None) -> Any:
    network, options = Network(config), {"hidden_states": True}
    options |= {} if memory is None else {"memory": memory}
    return jax.jit(lambda params, batch: network.hidden(params, batch, **options))(tiny.params(config), batch)


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    config, law = LAWS[name]
    found = _influence(config, law)
    assert found.keys() == law.keys()
    for who, picture in law.items():
        expected = _matrix(picture)
        np.testing.assert_array_equal(found[who][: len(expected)], expected, err_msg=who)
