"""Metrics as people read them: every share in per cent, with the unit in its name.

Objectives report the share of tokens that the model puts first as a fraction, tasks their metrics of generated texts in
per cent, and both may be called accuracy.
"""

import math
from collections.abc import Collection, Iterator, Mapping

OF_TOKENS = "accuracy"
"""The metric of objectives that is a fraction."""

PER_CENT = frozenset(
    {"accuracy", "exact_match", "f1", "bleu", "rouge1", "rouge2", "rougeLsum"}
    | {"average", "chrf", "gender_parity", "matthews", "pearson", "precision", "recall", "spearman"}
)
"""Metrics of texts that t2t's own functions give in per cent; others have the unit that their task gives them."""


def present(metrics: Mapping[str, float | None], *, of_texts: Collection[str]) -> Iterator[tuple[str, str, float]]:
    """Name, name with the unit, and value of each metric of an evaluation; NaN for values that are not finite.

    Args:
        metrics: as the evaluation writes them: of the objective, the number of examples, of texts.
        of_texts: names of those of texts.

    Example:
        >>> list(present({"accuracy": 0.25, "examples": 8.0}, of_texts=()))
        [('accuracy', 'token accuracy (%)', 25.0)]
    """
    for name, value in metrics.items():
        if name == "examples":
            continue
        number = math.nan if value is None else value
        unit = " (%)" if name in PER_CENT else ""
        if name == OF_TOKENS and name not in of_texts:
            yield name, f"token {name}{unit}", 100 * number
        else:
            yield name, f"{name}{unit}", number
