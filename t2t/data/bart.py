"""BART's objective: the inputs are a noised text, the targets are the text."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import sentence_ends, text_noise, vocabularies
from t2t.data.corruption_base import Corruption, Side, shortest_length


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextNoise(Corruption):
    """Noises of BART in the order in which its code composes them: permuted sentences, infilling, insertion, rotation.

    What the fields say is all that happens: the defaults are text infilling alone. The paper's large model joins it
    with `permute_sentences=1.0`, and was released with `poisson_mean=3.5` and `mask_random=0.1`. Token masking is
    `spans="tokens"`, token deletion `spans="tokens", replace_length=0`, document rotation `rate=0.0, rotate=1.0`.
    Without any noise, `rate=0.0`, it is a sequence autoencoder (Dai and Le, arXiv:1511.01432).

    Special tokens in the text are never masked or deleted, and no span covers one. Sentences end where
    `t2t.data.sentence_ends` finds their marks, words begin where the vocabulary says. Sentences do not leave their
    document where eos (or bos) parts documents inside a text; `Chunk(across_documents=False)` keeps texts to one.
    Both sides end in EOS where the feature says so. Room is kept for the bos that BART's frame puts before them.

    Reference: "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation, and
    Comprehension", arXiv:1910.13461, section 2.2; fairseq's denoising_dataset.py.

    Differs: random tokens are never special ones, and each mask is one with the same probability by itself, where
    fairseq decides for a span at once; insertions are counted by the raw text. Inputs never exceed their length: masks
    of spans without words that find no room are left out, which happens when a text fills the length and hardly
    shrinks.
    """

    rate: float = 0.3
    """Fraction of the words (with `spans="tokens"`, of the tokens) that spans make up, rounded up; in [0, 1]."""
    spans: Literal["tokens", "words", "poisson"] = "poisson"
    """What a span is: one token, one word, or a number of words of Poisson's law, 0 among them."""
    poisson_mean: float = 3.0
    """Mean words of a span (lambda)."""
    replace_length: Literal[-1, 0, 1] = 1
    """Masks in place of a span: 1, none (0), or one for each of its tokens (-1)."""
    mask_random: float = 0.0
    """Fraction of the masks that become a random token instead."""
    permute_sentences: float = 0.0
    """Fraction of the sentences that change places, rounded up; in [0, 1]."""
    sentence_marks: str = sentence_ends.MARKS
    """Characters that end a sentence."""
    insert: float = 0.0
    """Masks put in at random places, as a fraction of the text's tokens, rounded up."""
    rotate: float = 0.0
    """Probability that the text is rotated."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse fractions that are none."""
        for name in ("rate", "mask_random", "permute_sentences", "rotate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} must lie in [0, 1]")
        if not 0 <= self.insert < math.inf:
            raise ValueError(f"insert={self.insert} must be at least 0, and finite")
        shortest, longest = text_noise.POISSON_MEANS
        if not shortest <= self.poisson_mean <= longest:
            raise ValueError(
                f"poisson_mean={self.poisson_mean} must lie in [{shortest}, {longest}]; published are 3 and 3.5"
            )
        if self.spans not in ("tokens", "words", "poisson"):
            raise ValueError(f"spans={self.spans!r} must be 'tokens', 'words' or 'poisson'")
        if self.replace_length not in (-1, 0, 1):
            raise ValueError(f"replace_length={self.replace_length} must be -1, 0 or 1")

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The shorter length without bos and eos, less what is inserted; raises if the vocabulary lacks what it needs.

        For spans with a mask for each token the room for spans without words is kept for all but one text in 10,000.
        """
        self._check_vocabulary(sides["inputs"])
        text = shortest_length(sides, reserved=_num_specials(sides["inputs"]))
        limit = _room(sides["inputs"])
        while text and limit is not None and text + self._longer(text) > limit:
            text -= 1
        return text

    def _check_vocabulary(self, side: Side) -> None:
        masks = self.insert > 0 or (self.rate > 0 and (self.replace_length != 0 or self.spans == "poisson"))
        if masks and side.special.mask_id is None:
            raise ValueError(
                f"{self} needs a vocabulary with a mask token: t2t vocab train makes one, "
                "t2t.vocabulary.ByteVocabulary(mask=True) has one"
            )
        if self.permute_sentences or (self.rate and self.spans != "tokens"):
            _ = side.word_marks
        if self.permute_sentences:
            self._end_marks(side)

    def _end_marks(self, side: Side) -> np.ndarray:
        assert isinstance(side.vocabulary, vocabularies.SeqioVocabulary)  # others have no word_marks
        return sentence_ends.sentence_ends(side.vocabulary.vocabulary, self.sentence_marks)

    def _longer(self, length: int) -> int:
        """How many tokens the noised text may be longer than the raw one."""
        more = text_noise.budget(self.insert, length)
        if self.replace_length == -1 and self.spans == "poisson" and self.rate:
            spans = text_noise.budget(self.rate, length) / self.poisson_mean + 1
            empty = spans * math.exp(-self.poisson_mean)
            more += math.ceil(empty + 4 * math.sqrt(empty))
        return more

    @property
    def keeps_lengths_equal(self) -> bool:
        """No: noise shortens every text differently."""
        return False

    def _num_lengths(self, length: int) -> int:
        """Uniforms for the lengths of spans, which are as many as there can be spans."""
        most = text_noise.budget(self.rate, length)
        return text_noise.num_poisson_draws(most, mean=self.poisson_mean) if self.spans == "poisson" else most

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """Some six for each token at most."""
        inserted = (self._num_lengths(length) if self.rate else 0) + text_noise.budget(self.insert, length)
        number = 2 * length if self.permute_sentences else 0
        if self.rate:
            number += self._num_lengths(length) + length + (2 * length if self.mask_random else 0)
        if inserted:
            number += length + inserted + (2 * inserted if self.mask_random else 0)
        return number + 2

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs and targets."""
        if tokens.ndim > 1:
            raise ValueError("noised texts differ in length: noise them one by one")
        inputs, draws, length = sides["inputs"], _Draws(u), len(tokens)
        noised, num_empty = tokens, 0
        if self.permute_sentences:
            noised = self._permute(noised, draws.take(2 * length), inputs)
        if self.rate:
            noised, num_empty = self._infill(noised, draws, inputs)
        noised = self._insert(noised, num_empty, text_noise.budget(self.insert, length), draws, inputs)
        if self.rotate:
            whether, where = draws.take(2)
            noised = text_noise.rotate(noised, float(where)) if whether < self.rotate else noised
        return {"inputs": inputs.finish(noised), "targets": sides["targets"].finish(tokens)}

    def _permute(self, tokens: np.ndarray, u: np.ndarray, side: Side) -> np.ndarray:
        parts_documents = np.zeros(len(tokens), bool)
        for token in (side.special.bos_id, side.special.eos_id):
            if token is not None:
                parts_documents |= tokens == token
        starts = side.word_marks.starts(tokens)
        return text_noise.permute_sentences(
            tokens,
            u.reshape(2, -1),
            ends=sentence_ends.find_ends(tokens, table=self._end_marks(side), starts=starts),
            fixed=parts_documents,
            rate=self.permute_sentences,
        )

    def _infill(self, tokens: np.ndarray, draws: "_Draws", side: Side) -> tuple[np.ndarray, int]:
        """The text with spans replaced, and how many spans have no words."""
        is_text = side.is_text[tokens]
        starts = is_text if self.spans == "tokens" else side.word_marks.starts(tokens) & is_text
        words = text_noise.budget(self.rate, int(np.count_nonzero(starts)))
        lengths = np.ones(words, np.int64)
        u_lengths, u_words = draws.take(self._num_lengths(len(tokens))), draws.take(len(tokens))
        if self.spans == "poisson":
            lengths = text_noise.poisson_lengths(u_lengths, mean=self.poisson_mean, words=words)
        noised = text_noise.infill(
            tokens,
            u_words,
            starts=starts,
            is_text=is_text,
            lengths=lengths[lengths > 0],
            masks=self._masks(len(tokens), draws, side),
            replace_length=self.replace_length,
        )
        return noised, int(np.count_nonzero(lengths == 0))

    def _insert(self, tokens: np.ndarray, num_empty: int, extra: int, draws: "_Draws", side: Side) -> np.ndarray:
        """The text with the masks of spans without words, as far as there is room, and `extra` more."""
        limit = _room(side)
        number = num_empty if limit is None else min(num_empty, limit - len(tokens) - extra)
        number = max(number, 0) + extra
        if not number:
            return tokens
        return text_noise.insert(tokens, draws.take(len(tokens) + number), values=self._masks(number, draws, side))

    def _masks(self, number: int, draws: "_Draws", side: Side) -> np.ndarray:
        """So many masks, a fraction of them random tokens."""
        masks = np.full(number, side.special.mask_id if side.special.mask_id is not None else -1, np.int32)
        if not self.mask_random:
            return masks
        is_random = draws.take(number) < self.mask_random
        drawn = side.text_ids[(draws.take(number) * len(side.text_ids)).astype(np.int64)]
        return np.where(is_random, drawn, masks)


class _Draws:
    """The uniforms of an example, taken from the front."""

    def __init__(self, u: np.ndarray):
        self._rest = u

    def take(self, number: int) -> np.ndarray:
        taken, self._rest = self._rest[:number], self._rest[number:]
        return taken


def _num_specials(side: Side) -> int:
    """Special tokens around a text: eos, and the bos of a frame."""
    return side.num_eos + (side.num_eos and side.special.bos_id is not None)


def _room(side: Side) -> int | None:
    """The most tokens of a noised text."""
    return None if side.length is None else side.length - _num_specials(side)
