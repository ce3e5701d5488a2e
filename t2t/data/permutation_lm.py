"""Permutation language modelling as a corruption: a sixth of a text is predicted, in an order drawn anew each epoch."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import permutation
from t2t.data.corruption_base import Corruption, Side, shortest_length, surround

CLOSING_TYPE = 2
"""Sentence type of the token that closes a text, <cls>: neither of the first sentence (0) nor of the second (1)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PermutationLM(Corruption):
    """XLNet's objective: inputs and targets are the text, weights mark what is predicted, `order` says in which order.

    The text ends in the vocabulary's eos and bos (XLNet's <sep> and <cls>) where it has them and the feature says
    `add_eos`; special tokens are never predicted. `order` is what `t2t.data.permutation.permutation_mask` compares, so
    that the mask [T, T] is made with the batch. `token_types` are 0, for <cls> 2.

    Of a text of T tokens, special ones counted, floor(T rate) are predicted: 85 of 512.

    With `reuse` an example is a window, of which a model remembers the first part while it reads the next window, which
    begins behind that part (`t2t.data.overlapping.OverlappingChunk` cuts texts so). What it remembers has not seen the
    second part, which the next window predicts.

    Reference: Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language Understanding",
    arXiv:1906.08237, sections 2.2, 2.3 and 2.5 and appendix A.4; zihangdai/xlnet.

    Differs: one text an example, where the authors put two sentences into the second part of a window, from another
    place half of the time, and predict nothing about that. Never fewer targets than asked for because special tokens
    were among those drawn.
    """

    rate: float = 1 / 6
    """Fraction of the tokens that are predicted, in (0, 1); the paper's 1 / K."""
    longest: int = 5
    """Size of the longest span; size n has a probability proportional to 1 / n."""
    context: float = 6.0
    """Tokens of the text around a span, for each of its n."""
    unit: Literal["tokens", "words"] = "tokens"
    """Of what a span has n. It begins at a word start in either case."""
    max_predictions: int | None = None
    """At most so many tokens of an example are predicted."""
    block: int | None = None
    """Tokens that are permuted together, block after block (perm_size of the code); None = all of a part."""
    reuse: float | None = None
    """Fraction of `inputs` that the next example has for its memory, in (0, 1); None = examples do not overlap."""
    direction: Literal["forward", "backward"] | None = None
    """Reverse every text (backward), and say so in the feature `reversed`; None = forward, and not said: all texts are.
    Bidirectional data are a mixture of a forward and a backward task."""

    makes = ("inputs", "targets")
    weighs = True

    def __post_init__(self):
        """Refuse fractions that are none."""
        for name in ("rate", "reuse"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ValueError(f"{name}={value} must lie strictly between 0 and 1")
        for name in ("longest", "context", "max_predictions", "block"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} must be at least 1")

    @property
    def adds(self) -> tuple[str, ...]:
        """The order, the sentence types, and what a memory or a reversed text ask for."""
        more = (("reuse",) if self.reuse else ()) + (("reversed",) if self.direction else ())
        return ("order", "token_types", *more)

    @property
    def reads_backwards(self) -> bool:
        """Whether texts are reversed."""
        return self.direction == "backward"

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The shorter length without eos and bos.

        Raises:
            ValueError: the vocabulary does not say where words begin, or one part of a window would be empty.
        """
        side = sides["inputs"]
        _ = side.word_marks
        length = shortest_length(sides, reserved=_num_closing(side))
        if length is not None and self.reuse is not None and not 0 < self.step(sides) < length:
            raise ValueError(f"reuse={self.reuse} of inputs of length {side.length} leaves a part of them without text")
        return length

    def step(self, sides: Mapping[str, Side]) -> int | None:
        """Tokens from the beginning of an example to that of the next; None where they do not overlap.

        Raises:
            ValueError: `inputs` have no length, of which that would be a fraction.
        """
        if self.reuse is None:
            return None
        if sides["inputs"].length is None:
            raise ValueError(f"reuse={self.reuse} is a fraction of the length of 'inputs': give sequence_length")
        return int(self.reuse * sides["inputs"].length)

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """One for the rank of each token, special ones included, and those of the targets of each part."""
        length += _num_closing(sides["inputs"])
        parts = self._parts(length, self.step(sides))
        return length + sum(self._num_target_uniforms(part) for part, _ in parts)

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs, targets, weights and what `adds` names."""
        side, reuse = sides["inputs"], self.step(sides)
        starts = side.word_marks.starts(tokens)
        if self.reads_backwards:
            tokens, starts = tokens[..., ::-1], starts[..., ::-1]
        text = close(tokens, side)
        length = text.shape[-1]
        is_text = side.is_text[text]
        begins = ~is_text  # special tokens are words of their own
        begins[..., : starts.shape[-1]] |= starts
        targets = self._choose(u[..., length:], begins, is_text, reuse)
        ranks = permutation.draw_ranks(u[..., :length], block=self.block, reuse=reuse)
        types = np.zeros_like(text)
        types[..., length - _has_bos(side) :] = CLOSING_TYPE
        made = {
            "inputs": text,
            "targets": text,
            "weights": targets.astype(np.int32),
            "order": permutation.reading_order(ranks, is_ordered=targets | ~is_text, reuse=reuse),
            "token_types": types,
            "reuse": np.full((*text.shape[:-1], 1), reuse or 0, np.int32),
            "reversed": np.full((*text.shape[:-1], 1), self.reads_backwards, np.int32),
        }
        return {name: made[name] for name in ("inputs", "targets", "weights", *self.adds)}

    def _choose(self, u: np.ndarray, starts: np.ndarray, candidates: np.ndarray, reuse: int | None) -> np.ndarray:
        """The targets of each part; reversed text is walked through from its end, where its words begin."""
        forward = slice(None, None, -1 if self.reads_backwards else 1)
        targets, used = np.zeros(starts.shape, bool), 0
        for part, count in self._parts(starts.shape[-1], reuse):
            number = self._num_target_uniforms(part)
            targets[..., part] = permutation.choose_targets(
                u[..., used : used + number],
                starts=starts[..., part][..., forward],
                candidates=candidates[..., part][..., forward],
                count=count,
                longest=self.longest,
                context=self.context,
                words=self.unit == "words",
            )[..., forward]
            used += number
        return targets

    def _parts(self, length: int, reuse: int | None) -> list[tuple[slice, int]]:
        """The part that is used again and the one behind it, with their numbers of targets; without `reuse` one."""
        count = max(1, math.floor(self.rate * length + 1e-9))
        count = count if self.max_predictions is None else min(count, self.max_predictions)
        if reuse is None or reuse >= length:
            return [(slice(0, length), count)]
        first = -(-count * reuse // length)
        return [(slice(0, reuse), first), (slice(reuse, length), count - first)]

    def _num_target_uniforms(self, part: slice) -> int:
        return permutation.num_target_uniforms(part.stop - part.start, context=self.context)


def close(tokens: np.ndarray, side: Side) -> np.ndarray:
    """The tokens, [..., T], with eos and then bos behind them, as XLNet reads a text."""
    return surround(surround(tokens, None, side.eos_id), None, side.special.bos_id if _has_bos(side) else None)


def _has_bos(side: Side) -> bool:
    return bool(side.num_eos) and side.special.bos_id is not None


def _num_closing(side: Side) -> int:
    return side.num_eos + _has_bos(side)
