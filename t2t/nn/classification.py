"""Heads that score labels: of texts, of pairs and choices, of each token, and of the ends of an answer."""

import dataclasses
from typing import Any, Literal, get_args

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t.functional import positions, precision
from t2t.nn import checks, projection
from t2t.nn.dropout import Dropout
from t2t.nn.feed_forward import ACTIVATIONS, Activation
from t2t.nn.norm import Norm

Task = Literal["sequence", "tokens", "span", "choice", "replaced", "next"]
TASKS: tuple[Task, ...] = ("sequence", "tokens", "span", "choice", "replaced", "next")
Pooling = Literal["first", "last", "mean", "pooler"]
Problem = Literal["regression", "single_label_classification", "multi_label_classification"]
PROBLEMS: tuple[Problem, ...] = get_args(Problem)
POOLINGS: tuple[Pooling, ...] = ("first", "last", "mean", "pooler")
HeadActivation = Activation | Literal["tanh", "identity"]
HEAD_ACTIVATIONS = {**ACTIVATIONS, "tanh": jnp.tanh, "identity": lambda x: x}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationHead:
    """Scores of labels: `classifier(dropout(norm(activation(dense(dropout(x))))))`, with the parts a family has.

    With `first_norm`, x is the norm of a state plus that of the text's first token.

    | task       | reads                  | gives                                                             |
    |------------|------------------------|-------------------------------------------------------------------|
    | `sequence` | one state of each text | `logits` [B, num_labels]                                          |
    | `tokens`   | every state            | `logits` [B, T, num_labels]                                       |
    | `span`     | every state            | `start_logits` and `end_logits` [B, T]                            |
    | `choice`   | one state of each text | `logits` [B, C], for batches whose texts have a second axis of C   |
    | `replaced` | every state            | `logits` [B, T]: above 0 where a token is held to be replaced     |
    | `next`     | one state of each pair | `next_sentence_logits` [B, 2]: the second text follows, or not    |
    """

    task: Task
    num_labels: int
    """Outputs of the classifier: span and next 2, choice and replaced 1."""
    labels: tuple[str, ...] = ()
    """Names of the labels in the order of their ids; none or `num_labels` of them."""
    problem_type: Problem | None = None
    """What the labels of a text are, by transformers' names: a number each, one of them, any of them; None says nothing
    of it. It changes no score: config.json keeps it, for those who make losses and probabilities of them."""
    pooling: Pooling = "first"
    """The state that stands for a text: of its first or last token, their mean, or what the model's pooler makes."""
    first_norm: Norm | None = None
    """Of the sum that is read instead of each token's state: with the state of its text's first token (DeBERTa-v3)."""
    activation: HeadActivation | None = None
    """Of a dense layer before the classifier; None = no such layer."""
    dense_dim: int | None = None
    """Outputs of that layer; None = d_model."""
    dense_bias: bool = True
    norm: Norm | None = None
    """After the activation."""
    use_bias: bool = True
    """Of the classifier."""
    drops_input: bool = False
    """Whether dropout comes before the dense layer, too."""
    dropout: float = 0.0
    """Fraction in [0, 1) of the classifier's input dropped."""
    initializer_std: float = 0.02
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_choice(self, "task", TASKS)
        checks.check_choice(self, "pooling", POOLINGS)
        if self.problem_type is not None:
            checks.check_choice(self, "problem_type", PROBLEMS)
            allowed, repair = "None where no text is classified", "Set problem_type=None."
            checks.check(self.task == "sequence", self, "problem_type", allowed=allowed, repair=repair)
        checks.check_positive(self, "num_labels")
        if self.activation is not None:
            checks.check_choice(self, "activation", tuple(HEAD_ACTIVATIONS))
        if self.dense_dim is not None:
            checks.check_positive(self, "dense_dim")
            allowed, repair = "None where there is no dense layer", "Set dense_dim=None, or an activation."
            checks.check(self.activation is not None, self, "dense_dim", allowed=allowed, repair=repair)
        fixed = {"span": 2, "choice": 1, "replaced": 1, "next": 2}.get(self.task, self.num_labels)
        allowed, repair = f"{fixed} for task={self.task!r}", f"Set num_labels={fixed}."
        checks.check(self.num_labels == fixed, self, "num_labels", allowed=allowed, repair=repair)
        allowed = f"no names, or one for each of the num_labels = {self.num_labels}"
        repair = "Name every label once, in the order of their ids."
        is_named = len(set(self.labels)) == len(self.labels) and len(self.labels) in (0, self.num_labels)
        checks.check(is_named, self, "labels", allowed=allowed, repair=repair)
        reads_each = self.first_norm is None or self.task in ("tokens", "span", "replaced")
        allowed, repair = "None where the task reads one state of each text", "Set first_norm=None."
        checks.check(reads_each, self, "first_norm", allowed=allowed, repair=repair)
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    @property
    def reads_pooled(self) -> bool:
        """Whether the model needs a pooler for it."""
        return self.reads_one and self.pooling == "pooler"

    @property
    def reads_one(self) -> bool:
        """Whether one state of each text is scored."""
        return self.task in ("sequence", "choice", "next")

    def make(
        self,
        *,
        vocab_size: int,
        d_model: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "ClassificationHeadModule":
        """The linen module for a width; the vocabulary does not matter."""
        del vocab_size
        return ClassificationHeadModule(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class ClassificationHeadModule(nn.Module):
    """Owns the dense layer, its norm, and the classifier."""

    config: ClassificationHead
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        *,
        pooled: Float[Array, "B D"] | None = None,
        segment_ids: Int[Array, "B T"] | None = None,
        deterministic: bool = True,
    ) -> dict[str, Array]:
        """Returns float32 scores by their names in `Output`."""
        config = self.config
        x = hidden
        if config.reads_one:
            x = pooled if config.reads_pooled else pool(hidden, pooling=config.pooling, segment_ids=segment_ids)
        if config.first_norm is not None:
            norm = config.first_norm.make(dtype=self.dtype, param_dtype=self.param_dtype, name="first_norm")
            x = norm(x + first_states(hidden, segment_ids=segment_ids))
        scores = self._classify(x, deterministic=deterministic)
        if config.task == "span":
            return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}
        if config.task == "next":
            return {"next_sentence_logits": scores}
        return {"logits": scores[..., 0] if config.task in ("choice", "replaced") else scores}

    def _classify(self, x: Float[Array, "*axes D"], *, deterministic: bool) -> Float[Array, "*axes C"]:
        config = self.config
        drop, width = Dropout(config.dropout), self.d_model
        if config.activation is not None:
            width = self.d_model if config.dense_dim is None else config.dense_dim
            x = drop(x, deterministic=deterministic) if config.drops_input else x
            kernel, bias = self._dense((self.d_model, width), ("embed", "mlp"), config.dense_bias, name="dense")
            x = projection.add_bias(jnp.einsum("...D,DE->...E", x, kernel), bias)
            x = HEAD_ACTIVATIONS[config.activation](x)
            x = nn.with_logical_constraint(x, ("batch", *("length",) * (x.ndim - 2), None))
        if config.norm is not None:
            x = config.norm.make(dtype=self.dtype, param_dtype=self.param_dtype, name="norm")(x)
        x = drop(x, deterministic=deterministic)
        shape = (width, config.num_labels)
        name = {"span": "span", "next": "next_sentence"}.get(config.task, "classifier")
        kernel, bias = self._dense(shape, ("embed", "types"), config.use_bias, name=name)
        wide = precision.at_least_float32(x.dtype)
        scores = jnp.einsum("...D,DC->...C", x, kernel, preferred_element_type=wide)
        return projection.add_bias(scores, None if bias is None else bias.astype(scores.dtype))

    def _dense(self, shape: tuple[int, int], axes: tuple[str, str], use_bias: bool, *, name: str) -> Any:
        return projection.Projection(
            shape=shape,
            axes=axes,
            use_bias=use_bias,
            std=self.config.initializer_std,
            initializer=self.config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
            name=name,
        )()


def pool(
    hidden: Float[Array, "B T D"], *, pooling: Pooling, segment_ids: Int[Array, "B T"] | None
) -> Float[Array, "B D"]:
    """One state for each row: of its first or last token that is no padding, or the mean over all of them.

    Rows of padding alone give a state, which no weight counts.

    Example:
        >>> hidden, segment_ids = jnp.array([[[9.0], [1.0], [5.0], [9.0]]]), jnp.array([[0, 1, 1, 0]])
        >>> [float(pool(hidden, pooling=p, segment_ids=segment_ids)[0, 0]) for p in ("first", "last", "mean")]
        [1.0, 5.0, 3.0]
    """
    if segment_ids is None:
        segment_ids = jnp.ones(hidden.shape[:2], jnp.int32)
    real = segment_ids != 0
    if pooling == "mean":
        weights = real.astype(hidden.dtype)[..., None]
        return jnp.sum(hidden * weights, axis=1) / jnp.maximum(jnp.sum(weights, axis=1), 1)
    length = hidden.shape[1]
    index = jnp.argmax(real, axis=1) if pooling == "first" else length - 1 - jnp.argmax(real[:, ::-1], axis=1)
    return jnp.take_along_axis(hidden, index[:, None, None], axis=1)[:, 0]


def first_states(hidden: Float[Array, "B T D"], *, segment_ids: Int[Array, "B T"] | None) -> Float[Array, "B #T D"]:
    """For each position the state of the first token of its text.

    Example:
        >>> hidden, segment_ids = jnp.array([[[5.0], [6.0], [7.0], [8.0]]]), jnp.array([[1, 1, 2, 2]])
        >>> first_states(hidden, segment_ids=segment_ids)[0, :, 0].tolist()
        [5.0, 5.0, 7.0, 7.0]
    """
    if segment_ids is None:
        return hidden[:, :1]
    index = jnp.arange(hidden.shape[1], dtype=jnp.int32)[None] - positions.segment_positions(segment_ids)
    return jnp.take_along_axis(hidden, index[..., None], axis=1)


def flatten_choices(batch: dict[str, Array]) -> tuple[dict[str, Array], int | None]:
    """A batch whose texts have a second axis of choices [B, C, T] as one of B * C rows, and C; others as they are."""
    choices = {name: value.shape[1] for name, value in batch.items() if value.ndim == 3}
    if not choices:
        return batch, None
    flat = {name: value.reshape(-1, value.shape[2]) if name in choices else value for name, value in batch.items()}
    return flat, next(iter(choices.values()))
