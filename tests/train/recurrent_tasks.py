"""Permutation and causal tasks on one long made-up text, for the runs of test_recurrent_runs.py."""

import random

from t2t.data import permutation_objectives, registry
from tests.train import tiny_run

SPLITS = {"train": 40, "validation": 16}


def documents(split: str) -> list[dict[str, str]]:
    """Lines that count: what comes next follows from what came before, across the segments too."""
    draw = random.Random(split)
    return [{"text": " ".join(draw.choices(tiny_run.WORDS, k=12)) + " "} for _ in range(SPLITS[split])]


SOURCE = registry.TextSource(documents, splits=tuple(SPLITS))
registry.add_objectives("lines", SOURCE)
permutation_objectives.add_permutation_lm("lines", SOURCE)
