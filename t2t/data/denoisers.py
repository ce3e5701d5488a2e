"""The objectives of pretraining: span corruption, masked, causal and prefix language modelling."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import corruption
from t2t.data.corruption_base import Corruption, Side, shortest_length, surround
from t2t.data.masked_tokens import MaskedTokens

__all__ = ["CausalLM", "MaskedTokens", "PrefixLM", "SpanCorruption"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanCorruption(Corruption):
    """T5's objective: spans of noise become sentinels in the inputs, the targets say what they were.

    512 inputs and 114 targets hold exactly 568 raw tokens at the defaults.

    Reference: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv:1910.10683,
    sections 3.1.4 and 3.3.4; t5.data.preprocessors.span_corruption.

    Differs: more spans than sentinels are refused or joined (T5 takes ordinary pieces then), and nothing is ever cut
    off: with `random_roll` room is kept for one span more. The raw text must not hold sentinels itself.
    """

    noise_density: float = 0.15
    """Fraction of the tokens that is noise, in (0, 1)."""
    mean_noise_span_length: float = 3.0
    """Tokens per span of noise, at least 1."""
    random_roll: bool = False
    """Rotate the noise by a random offset; without it the first token is never noise and the last always is."""
    final_sentinel: bool = False
    """End the targets with one sentinel more, as the figure of the paper shows and its code does not."""
    overflow: Literal["refuse", "merge"] = "refuse"
    """Where the noise has more spans than the vocabulary has sentinels: refuse, saying how many are needed, or join the
    spans from the last sentinel on into one, with as much noise as before (`corruption.join_last_spans`)."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse densities and lengths without meaning."""
        if not 0 < self.noise_density < 1:
            raise ValueError(f"noise_density={self.noise_density} must lie strictly between 0 and 1")
        if not self.mean_noise_span_length >= 1:
            raise ValueError(f"mean_noise_span_length={self.mean_noise_span_length} must be at least 1")
        if self.overflow not in ("refuse", "merge"):
            raise ValueError(f"overflow={self.overflow!r} must be 'refuse' or 'merge'")

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
        tokens = self._lengthened(tokens, sides)
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

    def _spans(self, tokens: int, side: Side) -> tuple[int, int]:
        """Noise tokens, and the most spans of noise: those that a roll may add and no more than can be told apart."""
        noise, spans = corruption.span_counts(tokens, **self._law)
        spans += self.random_roll
        return noise, min(spans, self._room(side)) if self.overflow == "merge" else spans

    def _room(self, side: Side) -> int:
        """Sentinels for spans: one is kept for the end where it gets one."""
        return len(side.sentinels) - self.final_sentinel

    def _lengthened(self, tokens: int, sides: Mapping[str, Side]) -> int:
        """The raw length where joined spans, of which the inputs hold one sentinel, leave room for more text."""
        inputs = sides["inputs"]
        if self._spans(tokens, inputs)[1] == corruption.span_counts(tokens, **self._law)[1] + self.random_roll:
            return tokens
        while self._lengths(tokens + 1, sides)[0] <= inputs.length:
            tokens += 1
        lengths = self._lengths(tokens, sides)
        return tokens - (self.noise_density == 0.5 and lengths[1] > lengths[0])  # as T5's helper

    def _lengths(self, tokens: int, sides: Mapping[str, Side]) -> tuple[int, int]:
        noise, spans = self._spans(tokens, sides["inputs"])
        inputs = tokens - noise + spans + sides["inputs"].num_eos
        return inputs, noise + spans + self.final_sentinel + sides["targets"].num_eos

    def _check_sentinels(self, tokens: int, side: Side) -> None:
        noise, spans = corruption.span_counts(tokens, **self._law)
        extra = self.random_roll + self.final_sentinel
        available = len(side.sentinels)
        if self.overflow == "merge" and self._room(side) > 0:
            return
        if spans + extra > available:
            mean = noise / max(available - extra, 1)
            longer = f"mean_noise_span_length of at least {mean:.3g}, " if available else ""
            raise ValueError(
                f"{self} makes {spans} spans of {tokens} tokens and needs {spans + extra} sentinels, but the "
                f"vocabulary has {available}: take {longer}a smaller noise_density or shorter inputs, or a vocabulary "
                f"with more sentinels (t2t vocab train --sentinels {spans + extra}), or overflow='merge'"
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
        if self.overflow == "merge":
            mask = corruption.join_last_spans(mask, sentinels=self._room(inputs))
        kept = corruption.spans_to_unique_sentinels(tokens, mask, inputs.sentinels)
        noise = corruption.spans_to_unique_sentinels(tokens, ~mask, targets.sentinels)
        if self.final_sentinel and tokens.size and mask[..., -1].all():
            spans = np.count_nonzero(corruption.span_starts(~mask).reshape(-1, tokens.shape[-1])[0])
            noise = surround(noise, None, int(targets.sentinels[spans]))
        return {"inputs": inputs.finish(kept), "targets": targets.finish(noise)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CausalLM(Corruption):
    """Language modelling from left to right: the targets are the text, with EOS; nothing is random.

    Reference: "Improving Language Understanding by Generative Pre-Training" (Radford et al., 2018).
    """

    makes = ("targets",)

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The length of the targets without EOS."""
        return shortest_length(sides, reserved=sides["targets"].num_eos)

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
        return shortest_length(sides, reserved=max(side.num_eos for side in sides.values()))

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
