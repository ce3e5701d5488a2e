"""T5's grid of denoising objectives: which tokens are noise, what the inputs make of it, what the targets say.

An objective has a name as in the paper's code, PATTERN_DENSITY_INPUTS_TARGETS:

    PATTERN    iid        each token is noise by itself          `Iid()`
               span_3     spans of 3 tokens on average           `Spans(mean_length=3)`
               reg_3      spans of 3 tokens at equal distances   `Regular(shortest=3, longest=3)`; reg_1-5 draws 1 to 5
    DENSITY    15         per cent of the tokens that are noise
    INPUTS     m          each noise token -> the same sentinel  "mask"
               r10s90     the same, 10 % become a random token   "mask", random=0.1
               r          each noise token -> a random token     "mask", random=1.0
               g          each -> a random token of the text     "gather"
               p          noise tokens change places             "permute"
               d          noise is dropped                       "drop"
               s          each span -> the same sentinel         "sentinel"
               u          each span -> a sentinel of its own     "sentinels"
    TARGETS    f          the text                               "text"
               d          clean tokens are dropped               "drop"
               s          each clean span -> the same sentinel   "sentinel"
               u          each -> that of the noise after it     "sentinels"

What they make of "Thank you for inviting me to your party last week ." (table 3 of the paper):

    prefix_lm         Thank you for inviting                            me to your party last week .
    iid_15_r10s90_f   Thank you <M> <M> me to your party apple week .   the text (BERT-style)
    all_permute       party me for your to . last you inviting ...      the text (deshuffling)
    iid_15_m_f        Thank you <M> <M> me to your party <M> week .     the text (MASS-style)
    iid_15_u_u        Thank you <X> me to your party <Y> week .         <X> for inviting <Y> last <Z>
    iid_15_d_d        Thank you me to your party week .                 for inviting last
    span_3_15_u_u     Thank you <X> to <Y> week .                       <X> for inviting me <Y> your party last <Z>

Reference: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv:1910.10683,
section 3.3 (t5/models/gin/objectives).
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import corruption, noise_transforms
from t2t.data.corruption_base import Corruption, Side, shortest_length
from t2t.data.denoisers import CausalLM, PrefixLM, SpanCorruption
from t2t.data.noise_patterns import Iid, Regular, Spans

T5_GRID = (
    "lm",
    "prefix_lm",
    "all_permute",
    "iid_15_r10s90_f",
    "iid_15_m_f",
    "iid_15_u_u",
    "iid_15_d_d",
    "iid_10_u_u",
    "iid_25_u_u",
    "iid_50_u_u",
    "span_2_15_u_u",
    "span_3_15_u_u",
    "span_5_15_u_u",
    "span_10_15_u_u",
)
"""The objectives that the paper compares, by their names in its code."""

_CHOICES = {
    "inputs": ("mask", "gather", "permute", "drop", "sentinel", "sentinels"),
    "targets": ("text", "drop", "sentinel", "sentinels"),
    "overflow": ("refuse", "merge"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Denoising(Corruption):
    """A denoising objective of T5's grid: a pattern of noise, and what inputs and targets make of it.

    The inputs decide how long a text is: with `Spans` as long as fills them exactly, else as long as fits whatever the
    noise. Targets that are the text shorten it to their own length; others must have room for what the noise comes to
    on average. T5 gives 512 inputs targets of 192 for iid_15_u_u, 104 for iid_15_d_d, 103, 256 and 512 for 10, 25 and
    50 per cent. A mask that happens to hold more noise than fits counts up to there, the text after it is left clean;
    one with more spans than sentinels has its last spans joined. So nothing is ever cut off.

    The mark of "mask" and "sentinel" is the first sentinel, as in T5, or the mask of a vocabulary without sentinels.

    Reference: arXiv:1910.10683, section 3.3; "MASS: Masked Sequence to Sequence Pre-training for Language Generation",
    arXiv:1905.02450, after which T5 calls iid_15_m_f.

    Differs: T5 cuts targets that are too long, and takes ordinary pieces where sentinels run out. Its random tokens may
    be sentinels, ours are never special tokens. Special tokens in the text are no noise, but with `Spans`, whose counts
    hold exactly.
    """

    pattern: Iid | Spans | Regular = Iid()
    """Which tokens are noise."""
    density: float = 0.15
    """Fraction of the tokens that is noise, in (0, 1]; below 1 for `Spans`."""
    inputs: Literal["mask", "gather", "permute", "drop", "sentinel", "sentinels"] = "sentinels"
    """What the inputs have in place of noise."""
    random: float = 0.0
    """Fraction of the noise tokens that "mask" makes random tokens."""
    targets: Literal["text", "drop", "sentinel", "sentinels"] = "sentinels"
    """The text, or what the targets have in place of clean tokens."""
    overflow: Literal["refuse", "merge"] = "refuse"
    """Where the noise has more spans than the vocabulary has sentinels on average: refuse, saying how many are needed,
    or join the last spans into one, with as much noise as before (`corruption.join_last_spans`)."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse what has no meaning."""
        if not 0 < self.density <= 1 or (self.density == 1 and isinstance(self.pattern, Spans)):
            raise ValueError(f"density={self.density} must lie in (0, 1], and below 1 with Spans")
        if not 0 <= self.random <= 1:
            raise ValueError(f"random={self.random} must lie in [0, 1]")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, choices))}")

    @property
    def keeps_lengths_equal(self) -> bool:
        """Yes, if the counts of the pattern are exact, or both sides are as long as the text."""
        exact = self.pattern.is_exact and self.overflow == "refuse"
        return exact or (self.inputs in ("mask", "gather", "permute") and self.targets == "text")

    @property
    def works_on_batches(self) -> bool:
        """Always."""
        return True

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The most raw tokens that fit, see the class; raises if targets or the vocabulary do not suffice for them."""
        inputs, targets = sides["inputs"], sides["targets"]
        shortest_length(sides, reserved=max(side.num_eos for side in sides.values()))
        if self.inputs in ("mask", "sentinel") or self.targets == "sentinel":
            _ = _mark(inputs), _mark(targets)
        room, text = _room(targets), _room(inputs)
        if text is None:
            return room if self.targets == "text" else None
        while self.pattern.is_exact and self._inputs_length(text + 1) + inputs.num_eos <= inputs.length:
            text += 1
        if self.pattern.is_exact and self.density == 0.5 and self._targets_length(text) > self._inputs_length(text):
            text -= 1  # one token less makes both sides equally long, as in T5
        if self.targets == "text" and room is not None:
            text = min(text, room)
        needed = math.ceil(self._targets_length(text))
        if room is not None and needed > room:
            raise ValueError(
                f"targets length {targets.length} is too short: {text} raw tokens, for inputs of length "
                f"{inputs.length}, need targets of length {needed + targets.num_eos}{self._on_average} under {self}"
            )
        self._check_sentinels(text, inputs)
        return text

    @property
    def _on_average(self) -> str:
        return "" if self.pattern.is_exact else " on average"

    def _inputs_length(self, text: int) -> float:
        amounts = self.pattern.amounts(text, self.density)
        clean = text - amounts.noise
        marked = clean + amounts.noise_spans
        return {"drop": clean, "sentinel": marked, "sentinels": marked}.get(self.inputs, text)

    def _targets_length(self, text: int) -> float:
        amounts = self.pattern.amounts(text, self.density)
        return {"text": text, "drop": amounts.noise}.get(self.targets, amounts.noise + amounts.clean_spans)

    def _check_sentinels(self, text: int, side: Side) -> None:
        amounts, available = self.pattern.amounts(text, self.density), len(side.sentinels)
        spans = [
            amounts.noise_spans if self.inputs == "sentinels" else 0,
            amounts.clean_spans if self.targets == "sentinels" else 0,
        ]
        needed = math.ceil(max(spans))
        if needed > available and (self.overflow == "refuse" or not available):
            # Some more than the mean, so that spans are seldom joined.
            wanted = needed if self.pattern.is_exact else needed + 4 * math.isqrt(needed)
            raise ValueError(
                f"{self} makes {needed} spans of {text} tokens{self._on_average}, each with a sentinel of its own, but "
                f"the vocabulary has {available}: take a smaller density, longer spans or shorter inputs, or a "
                f"vocabulary with more sentinels (t2t vocab train --sentinels {wanted}), or overflow='merge'"
            )

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """Those of the pattern, and up to two for each token where noise is replaced at random."""
        replacing = {"mask": 2 * length if self.random else 0, "gather": length, "permute": length}
        return self.pattern.num_uniforms(length) + replacing.get(self.inputs, 0)

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs and targets."""
        inputs, targets = sides["inputs"], sides["targets"]
        number = self.pattern.num_uniforms(tokens.shape[-1])
        mask = self.pattern.mask(u[..., :number], length=tokens.shape[-1], density=self.density)
        if not self.pattern.is_exact:
            mask = mask & inputs.is_text[tokens]
        mask = self._fitted(mask, sides)
        return {
            "inputs": _finish(self._noised(tokens, mask, u[..., number:], inputs), inputs),
            "targets": _finish(self._denoised(tokens, mask, targets), targets),
        }

    def _fitted(self, mask: np.ndarray, sides: Mapping[str, Side]) -> np.ndarray:
        """The mask with no more spans than there are sentinels, and no more noise than the targets hold."""
        inputs, targets = sides["inputs"], sides["targets"]
        if inputs.length is None and mask.size:
            self._check_sentinels(mask.shape[-1], inputs)
        if mask.size and not (self.pattern.is_exact and self.overflow == "refuse"):
            available = len(inputs.sentinels)
            # There is at most one span of clean tokens more than there are of noise.
            most = np.count_nonzero(corruption.span_starts(mask), axis=-1).max() + 1
            if "sentinels" in (self.inputs, self.targets) and most > available:
                mask = corruption.join_last_spans(mask, sentinels=available)
            room = _room(targets)
            if room is not None and self.targets != "text":
                mask = noise_transforms.fit_noise(mask, longest=room, marks=self.targets != "drop")
        return mask

    def _noised(self, tokens: np.ndarray, mask: np.ndarray, u: np.ndarray, side: Side) -> np.ndarray:
        """The text with something else in place of noise."""
        match self.inputs:
            case "mask" if self.random:
                law = {"mark": _mark(side), "random": self.random, "ids": side.text_ids}
                return noise_transforms.replace_noise(tokens, mask, u.reshape(*tokens.shape[:-1], 2, -1), **law)
            case "mask":
                return corruption.tokens_to_sentinel(tokens, mask, _mark(side))
            case "gather":
                return noise_transforms.gather_noise(tokens, mask, u)
            case "permute":
                return noise_transforms.permute_noise(tokens, mask, u)
            case other:
                return _without(tokens, mask, other, side)

    def _denoised(self, tokens: np.ndarray, mask: np.ndarray, side: Side) -> np.ndarray:
        """The text, or its noise with something else in place of clean tokens."""
        return tokens if self.targets == "text" else _without(tokens, ~mask, self.targets, side)


def _without(tokens: np.ndarray, mask: np.ndarray, kind: str, side: Side) -> np.ndarray:
    """The text with its spans dropped, or each replaced by the same sentinel or by one of its own."""
    if kind == "drop":
        return noise_transforms.keep_tokens(tokens, ~mask)
    marks = side.sentinels if kind == "sentinels" else np.full(tokens.shape[-1], _mark(side))
    return noise_transforms.replace_spans(tokens, mask, marks)


def _finish(tokens: np.ndarray, side: Side) -> np.ndarray:
    """With EOS, also where rows differ in length."""
    if tokens.dtype != object:
        return side.finish(tokens)
    return noise_transforms.rows_of([side.finish(row) for row in tokens])


def _room(side: Side) -> int | None:
    return None if side.length is None else side.length - side.num_eos


def _mark(side: Side) -> int:
    """What stands for noise where all of it has the same mark."""
    if len(side.sentinels):
        return int(side.sentinels[0])
    if side.special.mask_id is None:
        raise ValueError(
            "the objective needs a vocabulary with sentinels or a mask token: t2t vocab train makes both, "
            "t2t.vocabulary.ByteVocabulary() has both"
        )
    return side.special.mask_id


_NAME = re.compile(
    r"(?:iid|span_(?P<mean>[1-9]\d*)|reg_(?P<shortest>[1-9]\d*)(?:-(?P<longest>[1-9]\d*))?)"
    r"_(?P<density>\d\d)_(?P<inputs>[mrgpdsu]|r(?P<random>\d\d)s(?P<marked>\d\d))_(?P<targets>[fdsu])"
)
_INPUTS = {"m": "mask", "r": "mask", "g": "gather", "p": "permute", "d": "drop", "s": "sentinel", "u": "sentinels"}
_TARGETS = {"f": "text", "d": "drop", "s": "sentinel", "u": "sentinels"}


def t5_objective(name: str) -> Corruption:
    """The objective of a name of T5's grid: one of `T5_GRID`, or any PATTERN_DENSITY_INPUTS_TARGETS.

    Example:
        >>> objective = t5_objective("iid_15_r10s90_f")
        >>> objective.pattern, objective.density, objective.inputs, objective.random, objective.targets
        (Iid(), 0.15, 'mask', 0.1, 'text')

    Raises:
        ValueError: no such name.
    """
    if name == "lm":
        return CausalLM()
    if name == "prefix_lm":
        return PrefixLM()
    if name == "all_permute":
        return Denoising(density=1.0, inputs="permute", targets="text")
    match = _NAME.fullmatch(name)
    if match is None or match["density"] == "00" or int(match["random"] or 0) + int(match["marked"] or 100) != 100:
        raise ValueError(
            f"{name!r} is no objective of T5's grid: write PATTERN_DENSITY_INPUTS_TARGETS, such as iid_15_u_u, "
            "span_3_15_u_u, reg_1-5_25_d_d or iid_15_r10s90_f, or one of lm, prefix_lm, all_permute"
        )
    density, inputs, targets = int(match["density"]) / 100, match["inputs"], match["targets"]
    if match["mean"] and inputs == targets == "u":
        return SpanCorruption(noise_density=density, mean_noise_span_length=float(match["mean"]))
    return Denoising(
        pattern=_pattern(match),
        density=density,
        inputs=_INPUTS[inputs[0]],
        random=1.0 if inputs == "r" else int(match["random"] or 0) / 100,
        targets=_TARGETS[targets],
    )


def _pattern(match: re.Match[str]) -> Iid | Spans | Regular:
    if match["mean"]:
        return Spans(mean_length=float(match["mean"]))
    if match["shortest"]:
        return Regular(shortest=int(match["shortest"]), longest=int(match["longest"] or match["shortest"]))
    return Iid()
