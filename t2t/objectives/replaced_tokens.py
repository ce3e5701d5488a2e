"""Tell the tokens that a generator replaced from those that stood there (ELECTRA).

| batch key                | read by                                                                               |
|--------------------------|---------------------------------------------------------------------------------------|
| encoder_input_tokens     | [B, T] the generator: the text with masks                                             |
| what masked words need   | the generator's loss; they also say what stood there: see `t2t/objectives/masked.py`  |
| encoder_segment_ids      | [B, T] 0 = padding, which is not judged                                               |
| whatever the models read | both: positions, token types                                                          |
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from t2t.functional import detection, losses
from t2t.objectives.base import Carry, Metrics, Scalar, Term
from t2t.objectives.masked import gather_positions
from t2t.types import Batch

Judged = Literal["all", "chosen"]
Replacements = Literal["generator", "unigram", "uniform"]
_FORBIDDEN = -1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplacedTokenDetection:
    """Masked language modelling of the generator, and detection of its samples by the discriminator.

    At the chosen positions the generator's masked words are replaced by samples of its distribution, and the
    discriminator says of every token whether it is another than the original; a sample that happens to be the original
    counts as original. No gradient goes through the sampling.

    Terms: `cross_entropy` of the generator over the chosen positions, and `detection` over all tokens that are no
    padding (special tokens included, as in the paper's code). Metrics: `generator_accuracy`; `sampled_accuracy`, the
    share of samples that are the original; `replaced`, the share of judged tokens that are not; the discriminator's
    `detection_accuracy`, `detection_precision`, `detection_recall` and `detection_auc` (mean over batches).

    Reference: Clark et al., "ELECTRA", arXiv:2003.10555, section 2, and google-research/electra, run_pretraining.py.
    Differs: the mask token is never a sample, so that the discriminator never reads one; Google's code leaves it to
        chance. Evaluation draws samples too, always the same. `replacements="unigram"` draws from the tokens of the
        batch, whose distribution is that of the corpus; the paper counts the corpus.
    """

    coefficient: float = 50.0
    """Share of the detection in the loss, lambda of the paper's equation."""
    generator_coefficient: float = 1.0
    """Share of the generator's loss."""
    judged: Judged = "all"
    """The tokens whose detection is learned: all, or only the chosen (the paper's ELECTRA 15%)."""
    replacements: Replacements = "generator"
    """Where replacements come from: samples of the generator, tokens drawn from those of the batch, any tokens."""
    temperature: float = 1.0
    """Divides the generator's logits before sampling."""
    mask_id: int | None = None
    """The mask token, which is never drawn; a run takes it from its vocabulary."""

    additive: ClassVar[bool] = True

    def __post_init__(self):
        for name in ("coefficient", "generator_coefficient"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)} must not be negative")
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be positive; near 0 the likeliest token is drawn")

    def for_vocabulary(self, vocabulary: Any) -> "ReplacedTokenDetection":
        """The same objective, which knows the mask token of a vocabulary."""
        return dataclasses.replace(self, mask_id=vocabulary.mask_id) if self.mask_id is None else self

    def weights(self, batch: Batch) -> dict[str, Scalar]:
        """The sum of the loss weights of the generator, and the number of tokens that are judged."""
        chosen = choose(batch)
        judged = self._judged(batch, chosen)
        weights = {"detection": jnp.sum(judged.astype(jnp.float32))}
        if self.replacements == "generator":
            weights["cross_entropy"] = jnp.sum(chosen.weights.astype(jnp.float32))
        return weights

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """Terms and metrics of both models; the carry passes through.

        Raises:
            ValueError: the discriminator judges no tokens, or there is no generator to draw from.
        """
        generator_key, discriminator_key = (None, None) if key is None else jax.random.split(key)
        sampling_key = jax.random.fold_in(jax.random.key(0) if key is None else key, 1)
        chosen = choose(batch)
        named, reported = {}, {}
        if self.replacements == "generator":
            if "generator" not in models:
                raise ValueError("replacements='generator', but the model has none: give its ElectraConfig a generator")
            logits = _generator_logits(models["generator"], params, batch, chosen, key=generator_key)
            sums = losses.cross_entropy(logits, targets=chosen.targets, weights=chosen.weights)
            coefficient = self.generator_coefficient
            named["cross_entropy"] = Term(sum=sums.cross_entropy, weight=sums.weight, coefficient=coefficient)
            reported["generator_accuracy"] = (sums.correct, sums.weight)
            samples = self.sample(logits, key=sampling_key)
        else:
            samples = self._sample_without_model(models, batch, chosen, key=sampling_key)
        tokens = put(chosen.originals, samples, chosen)
        is_replaced = tokens != chosen.originals

        discriminator = models["discriminator"]
        seen = {**batch, "encoder_input_tokens": tokens}
        verdict = discriminator.hidden(discriminator.whole(params), seen, key=discriminator_key).logits
        if verdict is None or verdict.shape != tokens.shape:
            raise ValueError("the discriminator judges no tokens: give its preset head=heads.PRETRAINING")
        judged = self._judged(batch, chosen).astype(jnp.float32)
        found = detection.detection_loss(verdict, labels=is_replaced, weights=judged)
        named["detection"] = Term(sum=found.loss, weight=found.weight, coefficient=self.coefficient)
        return named, reported | _reported(found, verdict, chosen, samples, is_replaced, judged), carry

    def sample(self, logits: Float[Array, "B K V"], *, key: Array) -> Int[Array, "B K"]:
        """Tokens drawn in proportion to exp(logits / temperature), by Gumbel's maximum; without gradient."""
        logits = jax.lax.stop_gradient(logits) / self.temperature
        if self.mask_id is not None:
            ids = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
            logits = jnp.where(ids == self.mask_id, _FORBIDDEN, logits)
        return jax.random.categorical(key, logits, axis=-1).astype(jnp.int32)

    def _sample_without_model(
        self, models: Mapping[str, Any], batch: Batch, chosen: "Chosen", *, key: Array
    ) -> Int[Array, "B K"]:
        if self.replacements == "uniform":
            size = models["discriminator"].config.vocab_size
            if self.mask_id is None:
                return jax.random.randint(key, chosen.targets.shape, 0, size, jnp.int32)
            drawn = jax.random.randint(key, chosen.targets.shape, 0, size - 1, jnp.int32)
            return drawn + (drawn >= self.mask_id).astype(jnp.int32)
        is_real = (jnp.asarray(batch["encoder_segment_ids"]) > 0).reshape(-1).astype(jnp.int32)
        below = jnp.cumsum(is_real)  # the n-th real token is the first place with n + 1 of them at or before it
        nth = jax.random.randint(key, chosen.targets.shape, 0, jnp.maximum(below[-1], 1), jnp.int32)
        return chosen.originals.reshape(-1)[jnp.searchsorted(below, nth + 1)]

    def _judged(self, batch: Batch, chosen: "Chosen") -> Bool[Array, "B T"]:
        return chosen.everywhere if self.judged == "chosen" else jnp.asarray(batch["encoder_segment_ids"]) > 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
    """The positions whose tokens are hidden from the generator, in either form of a batch."""

    originals: Any
    """Int[B, T]: the text before it was masked."""
    everywhere: Any
    """Bool[B, T]: the chosen positions."""
    positions: Any
    """Int[B, K] of the targets; None = each position has one (K = T)."""
    targets: Any
    """Int[B, K]: what stood there."""
    weights: Any
    """Float[B, K]: factor of each target's loss; 0 = not chosen."""


def choose(batch: Batch) -> Chosen:
    """What was hidden in a batch, and the text before."""
    inputs = jnp.asarray(batch["encoder_input_tokens"])
    if "encoder_predict_positions" not in batch:
        targets, weights = (jnp.asarray(batch[f"encoder_{name}"]) for name in ("target_tokens", "loss_weights"))
        originals = jnp.where(weights > 0, targets, inputs)
        return Chosen(originals=originals, everywhere=weights > 0, positions=None, targets=targets, weights=weights)
    names = ("positions", "targets", "weights")
    positions, targets, weights = (jnp.asarray(batch[f"encoder_predict_{name}"]) for name in names)
    partly = Chosen(originals=inputs, everywhere=None, positions=positions, targets=targets, weights=weights)
    everywhere = put(jnp.zeros(inputs.shape, bool), jnp.ones(targets.shape, bool), partly)
    return dataclasses.replace(partly, originals=put(inputs, targets, partly), everywhere=everywhere)


def put(tokens: Array, values: Array, chosen: Chosen) -> Array:
    """The tokens [B, T] with values [B, K] at the chosen positions."""
    if chosen.positions is None:
        return jnp.where(chosen.weights > 0, values, tokens)
    places = jnp.where(chosen.weights > 0, chosen.positions, tokens.shape[1])  # what only fills a row falls outside
    return jax.vmap(lambda row, at, value: row.at[at].set(value, mode="drop"))(tokens, places, values)


def _generator_logits(
    generator: Any, params: Mapping[str, Any], batch: Batch, chosen: Chosen, *, key: Array | None
) -> Float[Array, "B K V"]:
    theta = generator.whole(params)
    hidden = generator.hidden(theta, batch, key=key).last_hidden
    if chosen.positions is not None:
        hidden = gather_positions(hidden, positions=chosen.positions)
    return generator.logits(theta, hidden)


def _reported(
    found: detection.DetectionSums,
    verdict: Float[Array, "B T"],
    chosen: Chosen,
    samples: Int[Array, "B K"],
    is_replaced: Bool[Array, "B T"],
    judged: Float[Array, "B T"],
) -> Metrics:
    is_chosen = chosen.weights > 0
    is_same = is_chosen & (samples == chosen.targets)
    predicted = found.true_positives + found.false_positives
    replaced = found.true_positives + found.false_negatives
    return {
        "sampled_accuracy": tuple(jnp.sum(which.astype(jnp.float32)) for which in (is_same, is_chosen)),
        "replaced": (replaced, found.weight),
        "detection_accuracy": (found.correct, found.weight),
        "detection_precision": (found.true_positives, predicted),
        "detection_recall": (found.true_positives, replaced),
        "detection_auc": detection.ranked_pairs(jax.lax.stop_gradient(verdict), labels=is_replaced, weights=judged),
    }
