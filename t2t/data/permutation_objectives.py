"""Registering permutation language modelling on a source of documents: examples apart, and windows for a memory."""

import functools

from t2t.data import preprocessors, registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data.overlapping import OverlappingChunk
from t2t.data.permutation_lm import PermutationLM

REUSE = 0.5
"""Fraction of a window that the next one has for its memory: 256 of 512 tokens, as published."""


def add_permutation_lm(name: str, source: seqio.DataSource, *, field: str = "text") -> tuple[str, ...]:
    """Register XLNet's objective on a source of documents, and return the names.

        NAME_permutation_lm                 examples that do not overlap, for any model with queries
        NAME_permutation_lm_forward         windows that overlap by half, for a model that remembers (memory_reuse)
        NAME_permutation_lm_backward        the same of the reversed text, with a model that is bidirectional
        NAME_permutation_lm_bidirectional   both, half of the rows each

    All make inputs, targets, weights, order and token_types; a sixth of the tokens is predicted. Documents are joined.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text.
        field: the name of that field.
    """
    plain, windows = f"{name}_permutation_lm", {}
    registry.add_objective(plain, source, PermutationLM(), field=field)
    for direction in ("forward", "backward"):
        corruption = PermutationLM(reuse=REUSE, direction=direction)
        task = registry.add_task(
            f"{plain}_{direction}",
            source,
            output_features={made: registry.feature() for made in corruption.makes},
            preprocessors=[
                functools.partial(seqio.preprocessors.rekey, key_map={"targets": field}),
                functools.partial(preprocessors.tokenize, copy_pretokenized=False),
                OverlappingChunk(corruption=corruption),
                corruption,
            ],
        )
        windows[task.name] = 1.0
    registry.add_mixture(f"{plain}_bidirectional", windows)
    return (plain, *windows, f"{plain}_bidirectional")
