"""The published ways to noise a text for an encoder-decoder, by name, and their registration on a source of documents.

`BART` holds what its paper compares, `T5_GRID` what T5's does (see `t2t.data.t5_grid` for its names).
"""

from collections.abc import Mapping, Sequence

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data.bart import TextNoise
from t2t.data.t5_grid import T5_GRID, t5_objective

PAPER = TextNoise(rate=0.3, permute_sentences=1.0)
"""BART's large model: 30 % of the words infilled, all sentences permuted. arXiv:1910.13461, sections 2.2 and 5.1."""

RELEASED = TextNoise(rate=0.3, permute_sentences=1.0, poisson_mean=3.5, mask_random=0.1)
"""The settings of the released models, as their authors published them for fairseq."""

BART: Mapping[str, TextNoise] = {
    "token_masking": TextNoise(rate=0.15, spans="tokens"),
    "token_deletion": TextNoise(rate=0.15, spans="tokens", replace_length=0),
    "text_infilling": TextNoise(rate=0.3),
    "sentence_permutation": TextNoise(rate=0.0, permute_sentences=1.0),
    "document_rotation": TextNoise(rate=0.0, rotate=1.0),
    "autoencoding": TextNoise(rate=0.0),
    "bart": PAPER,
    "bart_released": RELEASED,
}
"""Noises by the last part of the name of their tasks.

Differs: the paper does not say how many tokens its ablation masks or deletes; here 15 %, BERT's share.
"""

WITHIN_DOCUMENTS = ("prefix_lm", "all_permute")
"""Objectives of T5's grid whose texts are cut from single documents."""


def add_bart_objectives(name: str, source: seqio.DataSource, *, field: str = "text") -> tuple[str, ...]:
    """Register every one of `BART` on a source of documents, and return the names of the tasks.

        NAME_token_masking          15 % of the tokens become the mask
        NAME_token_deletion         15 % of the tokens are missing
        NAME_text_infilling         30 % of the words, in spans of Poisson's law (mean 3), one mask for each span
        NAME_sentence_permutation   the sentences in another order
        NAME_document_rotation      the text begins at another token
        NAME_autoencoding           no noise: a sequence autoencoder (Dai and Le, arXiv:1511.01432)
        NAME_bart                   infilling and permutation: the model of the paper
        NAME_bart_released          the same with mean 3.5, and a random token for each tenth mask

    All make inputs and targets; the targets are the text. Documents are cut to what fits, and never joined, so that no
    sentence or rotation crosses from one into another; rows of a batch are filled by packing.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text.
        field: the name of that field.
    """
    for suffix, noise in BART.items():
        registry.add_objective(f"{name}_{suffix}", source, noise, field=field, across_documents=False)
    return tuple(f"{name}_{suffix}" for suffix in BART)


def add_t5_grid(
    name: str, source: seqio.DataSource, *, field: str = "text", objectives: Sequence[str] = T5_GRID
) -> tuple[str, ...]:
    """Register T5's grid of objectives on a source of documents as NAME_t5_OBJECTIVE, and return the names.

    All make inputs and targets, but lm, which makes targets with EOS after each document. Documents are joined and cut
    to the raw length that fits the run's lengths, but for `WITHIN_DOCUMENTS`, as in T5.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text.
        field: the name of that field.
        objectives: names that `t5_objective` knows, such as span_3_50_u_u or reg_1-5_15_s_s.
    """
    for objective in objectives:
        registry.add_objective(
            f"{name}_t5_{objective}",
            source,
            t5_objective(objective),
            field=field,
            across_documents=objective not in WITHIN_DOCUMENTS,
        )
    return tuple(f"{name}_t5_{objective}" for objective in objectives)
