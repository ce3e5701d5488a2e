"""Rates of mixtures, and the arithmetic that turns a position of the training stream into (task, epoch, example).

Order is a pure function: position p of a task of n examples is example perm(seed, p // n)(p mod n), and a mixture maps
its positions onto (task, position within the task). Nothing is drawn while training, so a position is the whole state
of a stream, and any process can compute any part of it.
"""

import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

WINDOW = 4096
"""Positions of a mixture that are shuffled among each other, so that no lane meets the tasks in a fixed rhythm."""

Rate = float | Callable[..., float]
"""A number, or a function of a task (anything with `num_input_examples(split)`), as seqio's mixtures take it."""


class Draw(NamedTuple):
    """One example of the stream: example `index` of task number `task`, read for the `epoch`-th time."""

    task: int
    epoch: int
    index: int


def derive_seed(seed: int, *names: str | int) -> int:
    """A seed below 2**63 for one purpose, so that tasks, epochs and windows of one run share no random numbers.

    >>> derive_seed(0, "wikipedia") == derive_seed(0, "wikipedia"), derive_seed(0, "books") == derive_seed(1, "books")
    (True, False)
    """
    digest = hashlib.sha256(repr((int(seed), *names)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def permutation(size: int, seed: int, epoch: int) -> np.ndarray:
    """The order of `size` examples in one epoch, as an array of indices.

    Differs: from grain's index_shuffle, which needs no array but does not return for some seeds (5 elements, seed 216).
    """
    generator = np.random.Generator(np.random.Philox(derive_seed(seed, "order", epoch)))
    order = generator.permutation(size).astype(np.uint32 if size < 2**32 else np.uint64)
    order.setflags(write=False)
    return order


def share_out(sums: Sequence[int], position: int) -> tuple[int, int]:
    """Which of the weighted streams holds a position of their mixture, and the position within that stream.

    `sums` are the cumulative weights from 0: (0, 1, 3) for weights 1 and 2. Halves the streams until one is left; of
    the first k positions floor(k left / (left + right)) go left. All in whole numbers: after any number of positions
    each stream had its exact share, give or take the number of halvings, log2(streams).

    >>> [share_out((0, 1, 3), position) for position in range(6)]
    [(1, 0), (1, 1), (0, 0), (1, 2), (1, 3), (0, 1)]
    """
    low, high = 0, len(sums) - 1
    while high - low > 1:
        middle = (low + high) // 2
        left, total = sums[middle] - sums[low], sums[high] - sums[low]
        before, after = position * left // total, (position + 1) * left // total
        if after > before:
            high, position = middle, before
        else:
            low, position = middle, position - before
    return low, position


def whole_weights(rates: Sequence[float]) -> tuple[int, ...]:
    """Whole numbers in exactly the proportions of the rates.

    >>> whole_weights([0.5, 1.5, 1])
    (1, 3, 2)
    """
    fractions = [Fraction(rate) for rate in rates]
    denominator = math.lcm(*(fraction.denominator for fraction in fractions))
    weights = [int(fraction * denominator) for fraction in fractions]
    return tuple(weight // math.gcd(*weights) for weight in weights)


@dataclass(frozen=True, kw_only=True)
class Order:
    """The stream of a mixture of tasks with these numbers of examples, rates and seeds; `locate` reads it anywhere."""

    sizes: tuple[int, ...]
    rates: tuple[float, ...]
    seeds: tuple[int, ...]  # one a task, see derive_seed
    seed: int  # of the mixture itself

    def __post_init__(self) -> None:
        if not len(self.sizes) == len(self.rates) == len(self.seeds) > 0:
            raise ValueError(f"sizes, rates and seeds must be one each for every task, got {self}.")
        if min(self.sizes) < 1:
            raise ValueError(f"Every task needs at least one example, got sizes={self.sizes}.")
        if not all(0 < rate < math.inf for rate in self.rates):
            raise ValueError(f"Rates must be positive and finite, got {self.rates}.")

    @functools.cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(whole_weights(self.rates), initial=0))

    @functools.cached_property
    def _permutations(self) -> tuple[Callable[[int], np.ndarray], ...]:
        return tuple(_remembered(size, seed) for size, seed in zip(self.sizes, self.seeds, strict=True))

    @functools.cached_property
    def _windows(self) -> Callable[[int], np.ndarray]:
        return _remembered(WINDOW, self.seed)

    def locate(self, position: int) -> Draw:
        """The example at a position of the stream."""
        task = 0
        if len(self.sizes) > 1:
            window, place = divmod(position, WINDOW)
            shuffled = window * WINDOW + int(self._windows(window)[place])
            task, position = share_out(self._sums, shuffled)
        epoch, place = divmod(position, self.sizes[task])
        return Draw(task, epoch, int(self._permutations[task](epoch)[place]))


def _remembered(size: int, seed: int) -> Callable[[int], np.ndarray]:
    # Lanes stand in neighbouring epochs, in many at once when there are few examples.
    return functools.lru_cache(maxsize=max(4, 2**20 // size))(functools.partial(permutation, size, seed))


@dataclass(frozen=True, kw_only=True)
class ExampleCount:
    """A rate by number of examples: min(examples * scale, maximum) ** (1 / temperature), in this order.

    `ExampleCount()` is proportional mixing, `maximum` its cap K, `temperature` above 1 makes rates more equal. A rate
    for any seqio.Mixture: `seqio.MixtureRegistry.add(name, [("task", ExampleCount(maximum=2**16)), ...])`.

    Reference: Raffel et al. 2020, Exploring the Limits of Transfer Learning, arXiv 1910.10683, section 3.5.2;
    seqio.mixing_rate_num_examples.
    Differs: in t2t's pipeline the count is of examples after preprocessing; seqio uses it only where a task is cached.
    """

    maximum: float | None = None  # examples
    scale: float = 1.0
    temperature: float = 1.0
    split: str = "train"

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and self.scale > 0 and (self.maximum is None or self.maximum > 0)):
            raise ValueError(f"maximum, scale and temperature must be positive, got {self}.")

    def __call__(self, task: Any) -> float:
        """The rate of a task."""
        count = task.num_input_examples(self.split)
        if count is None:
            raise ValueError(f"Task '{task.name}' does not know its number of examples; give it a number as its rate.")
        rate = count * self.scale
        if self.maximum is not None:
            rate = min(rate, self.maximum)
        try:
            return rate if self.temperature == 1.0 else rate ** (1.0 / self.temperature)
        except OverflowError as error:
            raise ValueError(
                f"temperature={self.temperature} makes the rate of task '{task.name}' larger than numbers are: 1 is "
                "proportional mixing, more makes rates more equal"
            ) from error


def by_exponent(exponent: float, *, split: str = "train") -> ExampleCount:
    """A rate of examples ** exponent, by which languages are sampled: 1 is proportional, 0 makes all equal.

    >>> import types
    >>> task = types.SimpleNamespace(name="sw", num_input_examples=lambda split: 1000)
    >>> round(by_exponent(0.7)(task), 1), by_exponent(0.0)(task)
    (125.9, 1.0)

    Raises:
        ValueError: the exponent is negative.

    Reference: `t2t.data.languages`; it is the temperature 1 / exponent of `ExampleCount`.
    """
    if not 0 <= exponent < math.inf:
        raise ValueError(f"exponent={exponent} must be at least 0, from 0 (all equal) to 1 (proportional).")
    return ExampleCount(temperature=1.0 / exponent if exponent else math.inf, split=split)


def rate_table(rates: Mapping[str, float], sizes: Mapping[str, int]) -> str:
    """The mixture as a table for people: task, examples if they are known, rate, share of the examples read.

    >>> print(rate_table({"a": 1.0, "bc": 3.0}, {"a": 10, "bc": 2000}))
    task  examples  rate   share
    a           10     1  25.00%
    bc       2,000     3  75.00%
    """
    total = sum(rates.values())
    lines = [("task", "examples", "rate", "share")]
    lines += [
        (name, f"{sizes[name]:,}" if name in sizes else "", f"{rate:g}", f"{rate / total:.2%}")
        for name, rate in rates.items()
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    return "\n".join(rows)
