"""Masked language modelling as a task's corruption, with all the ways the literature chooses what to mask."""

import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from t2t.data import masking, word_masking
from t2t.data.corruption_base import Corruption, Side, shortest_length, surround

Unit = Literal["token", "word", "ngram", "span"]
Treatment = Literal["token", "span"]

USUAL_COUNT: Mapping[Unit, masking.Count] = {
    "token": "independent",
    "word": "exact",
    "ngram": "exact",
    "span": "ceiling",
}
USUAL_LONGEST: Mapping[Unit, int] = {"ngram": 3, "span": 10}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedTokens(Corruption):
    """BERT's objective, masked anew each epoch: inputs are corrupted, targets are the text, weights mark the chosen.

    The text stands between the vocabulary's bos and eos ([CLS] and [SEP]) where it has them and the feature says
    `add_eos`. Special tokens are never chosen. Weights are 1 on all chosen positions, those that became a random token
    or stayed as they were included.

        MaskedTokens()                                        RoBERTa, but for its number of tokens (count="rounded")
        MaskedTokens(count="exact", copies=10)                BERT
        MaskedTokens(unit="word")                             BERT's whole words
        MaskedTokens(unit="ngram")                            ALBERT
        MaskedTokens(unit="span", treat="span")               SpanBERT
        MaskedTokens(smoothing=0.5, counts="counts.npy")      XLM; DistilBERT has 0.7
        MaskedTokens(count="exact", mask=0.85, random=0.0)    the generator of ELECTRA

    Words are those of the vocabulary's marks (`t2t.vocabulary.words`). One that a piece of text cuts in two is masked
    as what is left of it; one longer than the number of tokens to choose is never masked.

    Reference: "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", arXiv:1810.04805,
    section 3.1; dynamic masks as in "RoBERTa: A Robustly Optimized BERT Pretraining Approach", arXiv:1907.11692; the
    units in `t2t.data.word_masking`, smoothing in `t2t.data.masking`.

    Differs: random tokens are never special ones unless `random_specials`, which both originals allow.
    """

    unit: Unit = "token"
    """What is chosen: single tokens, whole words, n-grams of words (ALBERT) or longer spans of words (SpanBERT)."""
    rate: float = 0.15
    """Fraction of the tokens that are chosen, in (0, 1)."""
    mask: float = 0.8
    """Fraction of the chosen that become the mask."""
    random: float = 0.1
    """Fraction of the chosen that become a random token; the rest stays."""
    treat: Treatment = "token"
    """Whether each chosen token becomes a mask, a random one or stays by itself, or all of a word, n-gram or span do
    the same (SpanBERT)."""
    count: masking.Count | None = None
    """How many of n tokens are chosen, specials counted in n: "independent", each text token with probability `rate`;
    "exact", max(1, round(rate n)), as BERT; "rounded", rate n rounded up or down at random, as RoBERTa; "ceiling",
    rate n rounded up, as XLM and SpanBERT. Of whole words, "independent" and "rounded" count words, not tokens. None:
    independent tokens, exact words and n-grams, else ceiling."""
    max_predictions: int | None = None
    """At most so many are chosen per example (BERT: 20 of 128, 77 of 512)."""
    random_specials: bool = False
    """Draw random tokens from the whole vocabulary, special tokens too."""
    longest: int | None = None
    """Words of an n-gram or span, at most; None: 3 and 10."""
    favor_longer: bool = False
    """Make the probabilities of n-grams rise with their length, not fall (1/n)."""
    stop: float = 0.2
    """Parameter of the geometric law of spans, in (0, 1): the probability to end after each word."""
    smoothing: float | None = None
    """Choose single tokens in proportion to count ** -smoothing; None: all alike."""
    counts: Num[np.ndarray, " V"] | Sequence[int] | str | os.PathLike | None = dataclasses.field(
        default=None, repr=False, compare=False
    )
    """How often each id occurs, for `smoothing`: an array, or a file of one (.npy, or text with a number a line). None:
    as often as in the split that is read, if t2t reads it."""

    makes = ("inputs", "targets")
    weighs = True

    def __post_init__(self):
        """Refuse fractions that are none, and what does not go together."""
        if not 0 < self.rate < 1:
            raise ValueError(f"rate={self.rate} must lie strictly between 0 and 1")
        if not (self.mask >= 0 and self.random >= 0 and self.mask + self.random <= 1 + 1e-9):
            raise ValueError(f"mask={self.mask} and random={self.random} must be fractions with a sum of at most 1")
        if self.max_predictions is not None and self.max_predictions < 1:
            raise ValueError(f"max_predictions={self.max_predictions} must be positive, or None for no limit")
        named = {"unit": get_args(Unit), "treat": get_args(Treatment), "count": (None, *get_args(masking.Count))}
        for name, possible in named.items():
            if getattr(self, name) not in possible:
                raise ValueError(f"{name}={getattr(self, name)!r}: possible are {', '.join(map(repr, possible))}")
        if self.smoothing is not None and not math.isfinite(self.smoothing):
            raise ValueError(f"smoothing={self.smoothing} must be finite, such as 0.5 or 0.7")
        if self.longest is not None and self.longest < 1:
            raise ValueError(f"longest={self.longest} must be at least one word")
        if not 0 < self.stop < 1:
            raise ValueError(f"stop={self.stop} must lie strictly between 0 and 1")
        self._check_combination()

    def _check_combination(self) -> None:
        usable = {
            "treat='span'": self.treat == "token" or self.unit != "token",
            "longest": self.longest is None or self.unit in USUAL_LONGEST,
            "favor_longer": not self.favor_longer or self.unit == "ngram",
            "smoothing": self.smoothing is None or self.unit == "token",
            "count='independent'": self.count != "independent" or self.unit in ("token", "word"),
        }
        if unusable := [name for name, is_usable in usable.items() if not is_usable]:
            raise ValueError(f"{', '.join(unusable)} does not go with unit={self.unit!r}: leave it out or change unit")
        if self.smoothing is not None and self.count == "independent":
            raise ValueError("smoothing needs a number of tokens: take count='ceiling', 'exact' or 'rounded'")
        if self.smoothing is None and self.counts is not None:
            raise ValueError("counts are read by smoothing=... alone, such as smoothing=0.5")

    @property
    def law(self) -> dict[str, float | str | int | None]:
        """The arguments that all choices share."""
        count = self.count or ("ceiling" if self.smoothing is not None else USUAL_COUNT[self.unit])
        return {"rate": self.rate, "count": count, "max_predictions": self.max_predictions}

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The shorter length without bos and eos; raises if the vocabulary lacks what the objective needs."""
        side = sides["inputs"]
        if side.special.mask_id is None:
            raise ValueError(
                "masked language modelling needs a vocabulary with a mask token: t2t vocab train makes one, "
                "t2t.vocabulary.ByteVocabulary(mask=True) has one"
            )
        if self.unit != "token":
            _ = side.word_marks  # raises where words cannot be told
        if self.counts is not None and len(self._weights) != side.special.size:
            raise ValueError(f"counts are of {len(self._weights)} ids but the vocabulary has {side.special.size}")
        return shortest_length(sides, reserved=self._num_specials(side))

    @property
    def learns(self) -> bool:
        """Whether the split's tokens are counted."""
        return self.smoothing is not None and self.counts is None

    def learn(self, tokens: Iterable[np.ndarray], sides: Mapping[str, Side]) -> "MaskedTokens":
        """With the counts of these tokens where none were given."""
        if not self.learns:
            return self
        return dataclasses.replace(self, counts=masking.token_counts(tokens, sides["inputs"].special.size))

    @functools.cached_property
    def _weights(self) -> Float[np.ndarray, " V"]:
        counts = self.counts
        if counts is None:
            raise ValueError("smoothing needs counts of the tokens: give counts=..., an array or a file")
        if isinstance(counts, str | os.PathLike):
            counts = _read_counts(pathlib.Path(counts))
        return masking.smoothed_weights(np.asarray(counts), smoothing=self.smoothing)

    @staticmethod
    def _num_specials(side: Side) -> int:
        return side.num_eos + (side.num_eos and side.special.bos_id is not None)

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """Those of the text with bos and eos."""
        return self.num_text_uniforms(length + self._num_specials(sides["inputs"]))

    def num_text_uniforms(self, length: int) -> int:
        """How many random numbers `mask_text` takes: three for each token and three more, of n-grams and spans four."""
        return (4 if self.unit in USUAL_LONGEST else 3) * (length + 1)

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs, targets and weights."""
        side = sides["inputs"]
        text = surround(tokens, side.special.bos_id if side.num_eos else None, side.eos_id)
        inputs, chosen = self.mask_text(text, u, side=side)
        return {"inputs": inputs, "targets": text, "weights": chosen.astype(np.int32)}

    def mask_text(
        self,
        text: Int[np.ndarray, "*B T"],
        u: Float[np.ndarray, "*B N"],
        *,
        side: Side,
        candidates: Bool[np.ndarray, "*B T"] | None = None,
    ) -> tuple[Int[np.ndarray, "*B T"], Bool[np.ndarray, "*B T"]]:
        """A text with all its special tokens after corruption, and True where a token was chosen.

        Args:
            text: the tokens.
            u: uniforms, `num_text_uniforms(T)` of them.
            side: whose vocabulary it is.
            candidates: where a token may be chosen; None: wherever it is no special token.
        """
        length = text.shape[-1]
        u = u.reshape(*text.shape[:-1], -1, length + 1)  # for the choice, the treatment, the replacement, the length
        candidates = side.is_text[text] if candidates is None else candidates
        labels = self._choose(text, u, candidates=candidates, side=side)
        treatment = u[..., 1, :length]
        corrupted = masking.replace_chosen(
            text,
            labels > 0,
            treatment=word_masking.first_of_each(treatment, labels) if self.treat == "span" else treatment,
            replacement=u[..., 2, :length],
            mask_id=side.special.mask_id,
            replacements=np.arange(side.special.size, dtype=np.int32) if self.random_specials else side.text_ids,
            mask=self.mask,
            random=self.random,
        )
        return corrupted, labels > 0

    def _choose(
        self,
        text: Int[np.ndarray, "*B T"],
        u: Float[np.ndarray, "*B K T+1"],
        *,
        candidates: Bool[np.ndarray, "*B T"],
        side: Side,
    ) -> Int[np.ndarray, "*B T"] | Bool[np.ndarray, "*B T"]:
        """Where text is chosen: above 0, and with units of several tokens another number for each of them."""
        if self.unit == "token":
            weights = None if self.smoothing is None else self._weights[text]
            return masking.choose_tokens(candidates, u[..., 0, :], weights=weights, **self.law)
        starts = side.word_marks.starts(text)
        if self.unit == "word":
            return word_masking.choose_words(candidates, u[..., 0, :], starts=starts, **self.law)
        law = {**self.law, "longest": self.longest or USUAL_LONGEST[self.unit]}
        if self.unit == "ngram":
            law["favor_longer"] = self.favor_longer
            return word_masking.choose_ngrams(candidates, u[..., ::3, :], starts=starts, **law)
        return word_masking.choose_spans(candidates, u[..., ::3, :], starts=starts, stop=self.stop, **law)


def _read_counts(path: pathlib.Path) -> Num[np.ndarray, " V"]:
    try:
        return np.load(path) if path.suffix == ".npy" else np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (OSError, ValueError) as error:
        raise ValueError(f"counts={str(path)!r} is no array of one count per id: {error}") from error
