"""The model as pure functions: `Network` wraps a linen module; parameters are a plain nested dict of arrays."""

import dataclasses
import functools
import math
from typing import Any, Protocol, runtime_checkable

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import traverse_util
from jax import Array
from jaxtyping import Float, Int

from t2t import types
from t2t.functional.kernels.choice import REFERENCE, Kernel
from t2t.nn import kernels as own_kernels
from t2t.nn import memory as memories
from t2t.nn import stack
from t2t.nn.cache import Cache
from t2t.nn.heads import VocabularyHead
from t2t.nn.memory import Memory

Params = dict[str, Any]
"""Parameters: a nested dict of arrays, without flax's boxes."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
    """What a model computes; None where it has no such thing or it was not asked for.

    Attributes:
        logits: float32 [B, T, V] of a head that scores the vocabulary, by `apply` alone; of heads that score labels, by
            `hidden` too: [B, num_labels], [B, T, num_labels], [B, choices] or [B, T] (see `nn/classification.py`).
        last_hidden: [B, T, D] of the decoder, or of the encoder where there is no decoder, after the final norm; what a
            mask decoder makes, where the head of an encoder has one.
        hidden_states: num_layers + 1 arrays [B, T, D] of the same stack: the embeddings, then each block's output, the
            last after the final norm.
        attentions: Attention weights [B, N, T, S] of every block of the same stack.
        encoder_last_hidden, encoder_hidden_states, encoder_attentions: Those of an encoder-decoder's encoder.
        decoder_hidden_states: Those of an encoder-decoder's decoder; `hidden_states` by another name.
        cross_attentions: Weights [B, N, T, S] with which the decoder reads the encoder.
        pooled: [B, D], the first token after the pooler.
        next_sentence_logits: float32 [B, 2] of the next-sentence classifier.
        start_logits, end_logits: float32 [B, T] of question answering heads.
        query_hidden_states: num_layers + 1 arrays [B, K, D] of the stream of K queries, where a model has one and the
            batch asks for it; its last one is `last_hidden` then, and `hidden_states` are those of the tokens.
        memory: A `nn.memory.Memory` of this segment, to be given with the next, of models that remember.

    Leaves carry no checked annotations, because JAX rebuilds this class around tracers and shapes.
    """

    logits: Any = None
    last_hidden: Any = None
    hidden_states: Any = None
    attentions: Any = None
    encoder_last_hidden: Any = None
    encoder_hidden_states: Any = None
    encoder_attentions: Any = None
    decoder_hidden_states: Any = None
    cross_attentions: Any = None
    pooled: Any = None
    next_sentence_logits: Any = None
    start_logits: Any = None
    end_logits: Any = None
    query_hidden_states: Any = None
    memory: Any = None


@runtime_checkable
class Config(Protocol):
    """What a model config offers: EncoderConfig, DecoderConfig, EncoderDecoderConfig."""

    @property
    def vocab_size(self) -> int:
        """Rows of the token table."""

    @property
    def d_model(self) -> int:
        """Width of the hidden states."""

    def make(self, **options: Any) -> nn.Module:
        """The linen module."""

    def example(self) -> types.Batch:
        """A smallest batch, for shapes."""


@dataclasses.dataclass(frozen=True)
class Network:
    """A model config bound to a dtype, as pure functions of parameters.

    Attributes:
        config: An EncoderConfig, DecoderConfig or EncoderDecoderConfig.
        dtype: Of activations and matrix products; softmax, norm statistics and logits are float32 always.
        param_dtype: Of parameters.
        remat: What the backward pass recomputes (`nn/stack.py`); None = as the config says.
        kernels: What computes the attention of `hidden`, the first that can (`functional/kernels/choice.py`); None = as
            the config says. Decoding is by the reference always.

    Raises:
        ValueError: `dtype` is none of these floats, or float16: states of trained models go beyond its 65,504 (T5's).
    """

    config: Config
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    remat: str | None = None
    kernels: tuple[Kernel, ...] | None = None

    def __post_init__(self):
        try:
            name = None if self.dtype is None else jnp.dtype(self.dtype).name
        except TypeError:
            name = None
        if name == "float16":
            raise ValueError(
                "dtype is float16, whose largest number is 65504: states of trained models are larger, and become "
                "infinite and then NaN. Compute in bfloat16 or float32; parameters may be stored in float16"
            )
        if name not in ("float32", "bfloat16", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; possible are float32, bfloat16 and float64")

    def init(self, key: Array) -> Params:
        """Random parameters, distributed as published for the family."""
        return nn.unbox(self._boxed(key))

    def shapes(self) -> Params:
        """Shape and dtype of every parameter; allocates nothing.

        Only one repetition of each stack's pattern is traced, outside the loop over the depth: the parameters of all of
        them have one axis more. Models that differ in depth alone share the work.
        """
        found = {name: getattr(self.config, name, None) for name in ("stack", *SIDES)}
        stacks = {name: part for name, part in found.items() if isinstance(part, stack.StackConfig)}
        config = self.config
        if stacks:
            config = dataclasses.replace(config, **{name: _unrepeated(part) for name, part in stacks.items()})
        shapes = _shapes_unrolled(dataclasses.replace(self, config=config))
        for side in SIDES:
            if side in shapes and stacks:
                shapes = {**shapes, side: _repeated_shapes(shapes[side], stacks[side if side in stacks else "stack"])}
        return jax.tree.map(lambda leaf: leaf, shapes)  # a copy, in the order of all trees

    def shapes_by_path(self) -> dict[str, tuple[int, ...]]:
        """Shape of every parameter by its path, such as `decoder/final_norm/scale`."""
        leaves = traverse_util.flatten_dict(self.shapes(), sep="/")
        return {path: tuple(leaf.shape) for path, leaf in leaves.items()}

    def logical_axes(self) -> Params:
        """The logical axis names of every parameter, as tuples in the structure of the parameters."""
        boxed = jax.eval_shape(self._boxed, jax.random.key(0))
        return jax.tree.map(lambda box: box.names, boxed, is_leaf=lambda x: isinstance(x, nn.LogicallyPartitioned))

    def hidden(
        self,
        params: Params,
        batch: types.Batch,
        *,
        key: Array | None = None,
        memory: Memory | None = None,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything but scores of the vocabulary. Without a key there is no dropout.

        `memory` is the output's of the segment before, for models that remember; None = there is none.
        """
        return self._apply(
            params,
            _device_batch(batch),
            method="hidden",
            kernels=self.kernels,
            rngs=None if key is None else {"dropout": key},
            deterministic=key is None,
            hidden_states=hidden_states,
            attentions=attentions,
            **({} if memory is None else {"memory": memory}),
        )

    def logits(self, params: Params, hidden: Float[Array, "*axes D"]) -> Float[Array, "*axes V"]:
        """Scores of the vocabulary, float32, for hidden states of any leading axes."""
        return self._apply(params, hidden, method="logits")

    def apply(
        self,
        params: Params,
        batch: types.Batch,
        *,
        deterministic: bool = True,
        key: Array | None = None,
        memory: Memory | None = None,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything, scores of the vocabulary included where the model has a head for them."""
        if not deterministic and key is None:
            raise ValueError("Network.apply: deterministic=False needs key=jax.random.key(...), the key of dropout.")
        output = self.hidden(
            params,
            batch,
            key=None if deterministic else key,
            memory=memory,
            hidden_states=hidden_states,
            attentions=attentions,
        )
        if not isinstance(self.config.head, VocabularyHead):
            return output
        return dataclasses.replace(output, logits=self.logits(params, output.last_hidden))

    def empty_memory(self, batch_size: int) -> Memory | None:
        """What `hidden` reads and leaves as `memory`, before the first segment; None for models without."""
        length = getattr(self.config, "memory_length", 0)
        if not length:
            return None
        return memories.empty(
            num_layers=self.config.stack.num_layers,
            batch_size=batch_size,
            length=length,
            d_model=self.config.d_model,
            dtype=self.dtype,
        )

    def unstack(self, params: Params) -> Params:
        """The parameters with every stacked `layers_j` as a tuple of per-layer trees, for `prefill` and `extend`."""
        return {name: stack.unstack(tree) if name in SIDES else tree for name, tree in params.items()}

    def prefill(self, unstacked: Params, batch: types.Batch, *, length: int) -> tuple[Float[Array, "B T D"], Cache]:
        """Reads the prompt; the cache has room for `length` positions of the decoder, the prompt's included.

        `decoder_input_tokens` [B, T] is the prompt, padded on the left where rows differ (`decoder_segment_ids` 0 there
        and 1 elsewhere; positions count from the first real token). An encoder-decoder reads the encoder's side too,
        once: what its decoder reads of it goes into the cache.
        """
        return self._apply_unrolled(unstacked, _device_batch(batch), method="prefill", length=length)

    def extend(self, unstacked: Params, tokens: Int[Array, "B T"], cache: Cache) -> tuple[Float[Array, "B T D"], Cache]:
        """Reads the next token of every row (or the next few) and returns their hidden states and the longer cache.

        Never extend past the room given to `prefill`: a traced index cannot be checked.
        """
        return self._apply_unrolled(unstacked, tokens, cache, method="extend")

    def _boxed(self, key: Array, *, unrolled: bool = False) -> Params:
        return self._module(unrolled=unrolled).init(key, self.config.example(), method="initialize")["params"]

    def _module(self, *, unrolled: bool = False, kernels: tuple[Kernel, ...] | None = REFERENCE) -> nn.Module:
        config = self.config if kernels is None else _with_kernels(self.config, kernels)
        return config.make(dtype=self.dtype, param_dtype=self.param_dtype, remat=self.remat, unrolled=unrolled)

    def _apply(self, params: Params, *args: Any, kernels: tuple[Kernel, ...] | None = REFERENCE, **options: Any) -> Any:
        return self._module(kernels=kernels).apply({"params": params}, *args, **options)

    def _apply_unrolled(self, unstacked: Params, *args: Any, **options: Any) -> Any:
        scopes = {name: stack.unrolled_scopes(tree) if name in SIDES else tree for name, tree in unstacked.items()}
        return self._module(unrolled=True).apply({"params": scopes}, *args, **options)


SIDES = ("encoder", "decoder")
"""Names of stacks in parameter trees."""


@functools.lru_cache(maxsize=256)
def _shapes_unrolled(network: Network) -> Params:
    """Shape and dtype of every parameter as the unrolled module holds them."""
    return jax.eval_shape(lambda key: nn.unbox(network._boxed(key, unrolled=True)), jax.random.key(0))


def _with_kernels(config: Any, kernels: tuple[Kernel, ...]) -> Any:
    """The model whose stacks compute their attention by the first of these that can."""
    found = {name: getattr(config, name, None) for name in ("stack", *SIDES)}
    stacks = {name: part for name, part in found.items() if isinstance(part, stack.StackConfig)}
    if kernels == REFERENCE and not any(own_kernels.may_differ(part.blocks) for part in stacks.values()):
        return config
    return dataclasses.replace(
        config, **{name: own_kernels.with_kernels(part, kernels) for name, part in stacks.items()}
    )


def _unrepeated(config: stack.StackConfig) -> stack.StackConfig:
    """The stack that has its pattern once, with parameters of its own."""
    num_layers = config.num_layers - len(config.pattern) * (config.repeats - 1)
    return dataclasses.replace(config, num_layers=num_layers, sharing=None)


def _repeated_shapes(shapes: Params, config: stack.StackConfig) -> Params:
    """The shapes of a stack's parameters, from those of the unrolled module that has the pattern once."""
    length = config.repeats if config.sharing is None else config.sharing.groups
    names = {f"layers_{j}_0": f"layers_{j}" for j in range(len(config.pattern))}
    stacked = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((length, *leaf.shape), leaf.dtype),
        {names[name]: tree for name, tree in shapes.items() if name in names},
    )
    return {name: tree for name, tree in shapes.items() if name not in names} | stacked


def count_parameters(config: Config) -> int:
    """The exact number of parameters, shared ones counted once; allocates nothing."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(Network(config).shapes()))


def _device_batch(batch: types.Batch) -> dict[str, Array]:
    return {name: jnp.asarray(array) for name, array in batch.items()}
