"""Patterns of noise in T5's grid of objectives: which tokens of a text are noise, and how many that makes."""

import dataclasses
from typing import ClassVar

import numpy as np

from t2t.data import corruption, noise_transforms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amounts:
    """Numbers of noise tokens, of spans of noise and of spans of clean tokens in a text: exact, or the mean."""

    noise: float
    noise_spans: float
    clean_spans: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Iid:
    """Every token is noise with the same probability, independently; special tokens never are."""

    is_exact: ClassVar[bool] = False

    def num_uniforms(self, length: int) -> int:
        """One for each token."""
        return length

    def mask(self, u: np.ndarray, *, length: int, density: float) -> np.ndarray:
        """True where a token is noise."""
        return corruption.iid_noise_mask(u, noise_density=density)

    def amounts(self, length: int, density: float) -> Amounts:
        """The means."""
        changes = max(length - 1, 0) * density * (1 - density)  # from clean to noise, and from noise to clean
        return Amounts(noise=length * density, noise_spans=density + changes, clean_spans=1 - density + changes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans:
    """Random spans of noise, as in `SpanCorruption`: their number and that of noise tokens are those of the length.

    Special tokens in the text are taken as any other, so that the counts hold.
    """

    mean_length: float = 3.0
    """Tokens per span of noise, at least 1."""

    is_exact: ClassVar[bool] = True

    def __post_init__(self):
        """Refuse spans of less than one token."""
        if not self.mean_length >= 1:
            raise ValueError(f"mean_length={self.mean_length} must be at least 1")

    def num_uniforms(self, length: int) -> int:
        """One for each token."""
        return length

    def mask(self, u: np.ndarray, *, length: int, density: float) -> np.ndarray:
        """True where a token is noise: the first never is, the last always."""
        return corruption.span_noise_mask(u, noise_density=density, mean_noise_span_length=self.mean_length)

    def amounts(self, length: int, density: float) -> Amounts:
        """The counts."""
        if length < 2:
            return Amounts(noise=0, noise_spans=0, clean_spans=length)
        noise, spans = corruption.span_counts(length, noise_density=density, mean_noise_span_length=self.mean_length)
        return Amounts(noise=noise, noise_spans=spans, clean_spans=spans)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Regular:
    """Spans of equal length at equal distances; the length is drawn for each text, special tokens are never noise."""

    shortest: int = 1
    """Fewest tokens of a span."""
    longest: int = 5
    """Most tokens of a span."""

    is_exact: ClassVar[bool] = False

    def __post_init__(self):
        """Refuse lengths out of order."""
        if not 1 <= self.shortest <= self.longest:
            raise ValueError(f"shortest={self.shortest} and longest={self.longest} must be in order, and at least 1")

    def num_uniforms(self, length: int) -> int:
        """Two: the length of the spans and where the first stands."""
        return 2

    def mask(self, u: np.ndarray, *, length: int, density: float) -> np.ndarray:
        """True where a token is noise."""
        return noise_transforms.regular_noise_mask(
            u, length=length, noise_density=density, shortest=self.shortest, longest=self.longest
        )

    def amounts(self, length: int, density: float) -> Amounts:
        """The means, up to the rounding of distances."""
        lengths = range(self.shortest, self.longest + 1)
        spans = sum(length * density / span for span in lengths) / len(lengths)
        return Amounts(noise=length * density, noise_spans=spans + density, clean_spans=spans + 1 - density)
