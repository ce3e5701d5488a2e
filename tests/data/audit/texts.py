"""A little corpus with planted copies, and texts to plant."""

import numpy as np


def words(rng: np.random.Generator, number: int, *, names: int = 3000) -> str:
    """So many random words."""
    return " ".join(f"w{i}" for i in rng.integers(names, size=number))


def change(text: str, rng: np.random.Generator, number: int) -> str:
    """The text with so many of its words replaced, in another case and with other punctuation."""
    parts = text.upper().split()
    for place in rng.choice(len(parts), size=number, replace=False):
        parts[place] = f"new{rng.integers(10**6)}"
    return ",  ".join(parts) + "."
