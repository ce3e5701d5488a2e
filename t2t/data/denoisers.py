"""The objectives of pretraining: span corruption, masked, causal and prefix language modelling."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import corruption
from t2t.data.corruption_base import Corruption, Side, surround


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanCorruption(Corruption):
    """T5's objective: spans of noise become sentinels in the inputs, the targets say what they were.

    512 inputs and 114 targets hold exactly 568 raw tokens at the defaults.

    Reference: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv:1910.10683,
    sections 3.1.4 and 3.3.4; t5.data.preprocessors.span_corruption.

    Differs: more spans than sentinels are refused (T5 takes ordinary pieces then), and nothing is ever cut off: with
    `random_roll` room is kept for one span more. The raw text must not hold sentinels itself.
    """

    noise_density: float = 0.15
    """Fraction of the tokens that is noise, in (0, 1)."""
    mean_noise_span_length: float = 3.0
    """Tokens per span of noise, at least 1."""
    random_roll: bool = False
    """Rotate the noise by a random offset; without it the first token is never noise and the last always is."""
    final_sentinel: bool = False
    """End the targets with one sentinel more, as the figure of the paper shows and its code does not."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse densities and lengths without meaning."""
        if not 0 < self.noise_density < 1:
            raise ValueError(f"noise_density={self.noise_density} must lie strictly between 0 and 1")
        if self.mean_noise_span_length < 1:
            raise ValueError(f"mean_noise_span_length={self.mean_noise_span_length} must be at least 1")

    @property
    def _law(self) -> dict[str, float]:
        return {"noise_density": self.noise_density, "mean_noise_span_length": self.mean_noise_span_length}

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """T5's raw length (568 for 512 inputs); raises if targets or sentinels do not suffice for it."""
        inputs, targets = sides["inputs"], sides["targets"]
        if inputs.length is None:
            return None
        # T5's helper counts in float64 and always with EOS, its mask in float32: they may differ by a token.
        room = inputs.length - self.random_roll
        tokens = corruption.span_lengths(room + 1 - inputs.num_eos, **self._law).tokens
        while tokens > 1 and self._lengths(tokens, sides)[0] > inputs.length:
            tokens -= 1
        needed = self._lengths(tokens, sides)[1]
        if targets.length is not None and needed > targets.length:
            raise ValueError(
                f"targets length {targets.length} is too short: {tokens} raw tokens, which fill inputs of length "
                f"{inputs.length}, need targets of length {needed} under {self}"
            )
        self._check_sentinels(tokens, inputs)
        return tokens

    @property
    def keeps_lengths_equal(self) -> bool:
        """Not when a rotated mask may cut a span in two."""
        return not self.random_roll

    def _lengths(self, tokens: int, sides: Mapping[str, Side]) -> tuple[int, int]:
        noise, spans = corruption.span_counts(tokens, **self._law)
        inputs = tokens - noise + spans + self.random_roll + sides["inputs"].num_eos
        return inputs, noise + spans + self.random_roll + self.final_sentinel + sides["targets"].num_eos

    def _check_sentinels(self, tokens: int, side: Side) -> None:
        noise, spans = corruption.span_counts(tokens, **self._law)
        extra = self.random_roll + self.final_sentinel
        available = len(side.sentinels)
        if spans + extra > available:
            mean = noise / max(available - extra, 1)
            longer = f"mean_noise_span_length of at least {mean:.3g}, " if available else ""
            raise ValueError(
                f"{self} makes {spans} spans of {tokens} tokens and needs {spans + extra} sentinels, but the "
                f"vocabulary has {available}: take {longer}a smaller noise_density or shorter inputs, or a vocabulary "
                f"with more sentinels (t2t vocab train --sentinels {spans + extra})"
            )

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """One for each token."""
        return length

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs and targets."""
        inputs, targets = sides["inputs"], sides["targets"]
        if inputs.length is None:
            self._check_sentinels(tokens.shape[-1], inputs)
        mask = corruption.span_noise_mask(u, **self._law, random_roll=self.random_roll)
        kept = corruption.spans_to_unique_sentinels(tokens, mask, inputs.sentinels)
        noise = corruption.spans_to_unique_sentinels(tokens, ~mask, targets.sentinels)
        if self.final_sentinel and tokens.size and mask[..., -1].all():
            spans = np.count_nonzero(corruption.span_starts(~mask).reshape(-1, tokens.shape[-1])[0])
            noise = surround(noise, None, int(targets.sentinels[spans]))
        return {"inputs": inputs.finish(kept), "targets": targets.finish(noise)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedTokens(Corruption):
    """BERT's objective, masked anew each epoch: inputs are corrupted, targets are the text, weights mark the chosen.

    The text stands between the vocabulary's bos and eos ([CLS] and [SEP]) where it has them and the feature says
    `add_eos`. Special tokens are never chosen. Weights are 1 on all chosen positions, those that became a random token
    or stayed as they were included.

    Reference: "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", arXiv:1810.04805,
    section 3.1; dynamic masks as in "RoBERTa: A Robustly Optimized BERT Pretraining Approach", arXiv:1907.11692.

    Differs: random tokens are never special ones unless `random_specials`, which both originals allow.
    """

    rate: float = 0.15
    """Fraction of the tokens that are chosen, in (0, 1)."""
    mask: float = 0.8
    """Fraction of the chosen that become the mask."""
    random: float = 0.1
    """Fraction of the chosen that become a random token; the rest stays."""
    count: Literal["independent", "exact", "rounded"] = "independent"
    """How many of n tokens are chosen, specials counted in n: each text token with probability `rate`; exactly
    max(1, round(rate n)), as BERT; or rate n rounded up or down at random, as RoBERTa."""
    max_predictions: int | None = None
    """At most so many are chosen per example (BERT: 20 of 128, 77 of 512)."""
    random_specials: bool = False
    """Draw random tokens from the whole vocabulary, special tokens too."""

    makes = ("inputs", "targets")
    weighs = True

    def __post_init__(self):
        """Refuse fractions that are none."""
        if not 0 < self.rate < 1:
            raise ValueError(f"rate={self.rate} must lie strictly between 0 and 1")
        if min(self.mask, self.random) < 0 or self.mask + self.random > 1 + 1e-9:
            raise ValueError(f"mask={self.mask} and random={self.random} must be fractions with a sum of at most 1")
        if self.max_predictions is not None and self.max_predictions < 1:
            raise ValueError(f"max_predictions={self.max_predictions} must be positive, or None for no limit")

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The shorter length without bos and eos; raises if the vocabulary has no mask."""
        if sides["inputs"].special.mask_id is None:
            raise ValueError(
                "masked language modelling needs a vocabulary with a mask token: t2t vocab train makes one, "
                "t2t.vocabulary.ByteVocabulary(mask=True) has one"
            )
        return _shortest(sides, self._num_specials(sides["inputs"]))

    @staticmethod
    def _num_specials(side: Side) -> int:
        return side.num_eos + (side.num_eos and side.special.bos_id is not None)

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """Three for each token, bos and eos included, and three more."""
        return 3 * (length + self._num_specials(sides["inputs"]) + 1)

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs, targets and weights."""
        side = sides["inputs"]
        text = surround(tokens, side.special.bos_id if side.num_eos else None, side.eos_id)
        inputs, chosen = corruption.mask_tokens(
            text,
            u.reshape(*text.shape[:-1], 3, -1),
            candidates=side.is_text[text],
            mask_id=side.special.mask_id,
            replacements=np.arange(side.special.size, dtype=np.int32) if self.random_specials else side.text_ids,
            rate=self.rate,
            mask=self.mask,
            random=self.random,
            count=self.count,
            max_predictions=self.max_predictions,
        )
        return {"inputs": inputs, "targets": text, "weights": chosen.astype(np.int32)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CausalLM(Corruption):
    """Language modelling from left to right: the targets are the text, with EOS; nothing is random.

    Reference: "Improving Language Understanding by Generative Pre-Training" (Radford et al., 2018).
    """

    makes = ("targets",)

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The length of the targets without EOS."""
        return _shortest(sides, sides["targets"].num_eos)

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """None."""
        return 0

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Targets."""
        return {"targets": sides["targets"].finish(tokens)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefixLM(Corruption):
    """The text split at a random place: inputs are what comes before, targets what comes after.

    Reference: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv:1910.10683,
    section 3.2.3; noise_density 0.25 is the S-denoiser of "UL2: Unifying Language Learning Paradigms",
    arXiv:2205.05131.
    """

    noise_density: float = 0.5
    """Mean fraction of the tokens in the targets, in [0, 0.5]."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse densities without meaning."""
        if not 0 <= self.noise_density <= 0.5:
            raise ValueError(f"noise_density={self.noise_density} must lie in [0, 0.5]")

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The shorter length without EOS, so that either side may be nearly all of the text."""
        return _shortest(sides, max(side.num_eos for side in sides.values()))

    @property
    def keeps_lengths_equal(self) -> bool:
        """No: every example is split elsewhere."""
        return False

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """One: the place of the split."""
        return 1

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs and targets."""
        if tokens.ndim > 1:
            raise ValueError("prefixes differ in length: split examples one by one")
        place = corruption.prefix_length(float(u[0]), len(tokens), noise_density=self.noise_density)
        return {
            "inputs": sides["inputs"].finish(tokens[:place]),
            "targets": sides["targets"].finish(tokens[place:]),
        }


def _shortest(sides: Mapping[str, Side], reserved: int) -> int | None:
    lengths = [side.length for side in sides.values() if side.length is not None]
    if not lengths:
        return None
    if min(lengths) <= reserved:
        raise ValueError(f"lengths {lengths} leave no room for text beside {reserved} special tokens")
    return min(lengths) - reserved
