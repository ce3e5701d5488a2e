"""The published ways to mask tokens, by name, and their registration as tasks on a source of documents.

`REPLACED_TOKENS` makes the data of a generator and discriminator pair (replaced token detection): the generator reads
`inputs` and predicts `targets` where `weights` is 1; the discriminator reads `targets` with the generator's samples at
those places, and judges every token. So no mask ever reaches the discriminator, special tokens are never replaced, and
the loss of the generator is at the chosen tokens alone, of which 85 % are masked and 15 % stay as they were.
"""

import dataclasses
from collections.abc import Mapping

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data.masked_tokens import MaskedTokens


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplacedTokens(MaskedTokens):
    """What a generator learns to fill, and a discriminator to tell from what it has filled in."""

    judged = True


WHOLE_WORDS = MaskedTokens(unit="word")
"""BERT's whole words: arXiv:1810.04805, its models of May 2019."""

NGRAMS = MaskedTokens(unit="ngram")
"""ALBERT's, arXiv:1909.11942: up to three words, p(n) in proportion to 1/n."""

SPANS = MaskedTokens(unit="span", treat="span")
"""SpanBERT's, arXiv:1907.10529: 3.8 words on average, each span masked, replaced or kept as one."""

SMOOTHED = MaskedTokens(smoothing=0.5)
"""XLM's, arXiv:1901.07291: rare tokens more often than frequent ones, by the counts of the split that is read."""

EXACT = MaskedTokens(count="exact")
"""As many tokens in each text as BERT masks."""

ROUNDED = MaskedTokens(count="rounded")
"""As many as RoBERTa masks, arXiv:1907.11692."""

STATIC = MaskedTokens(count="exact", copies=1)
"""The same masks in every epoch."""

DUPLICATED = MaskedTokens(count="exact", copies=10)
"""BERT's ten copies of its corpus, masked once: each mask comes back every ten epochs."""

REPLACED_TOKENS = ReplacedTokens(count="exact", mask=0.85, random=0.0)
"""ELECTRA's, arXiv:2003.10555 (pretrain_helpers.py).

Differs: ELECTRA draws places with replacement, so that some texts have fewer than round(0.15 n).
"""

REPLACED_QUARTER = dataclasses.replace(REPLACED_TOKENS, rate=0.25)
"""ELECTRA-large's."""

OBJECTIVES: Mapping[str, MaskedTokens] = {
    "mlm_exact": EXACT,
    "mlm_rounded": ROUNDED,
    "mlm_whole_word": WHOLE_WORDS,
    "mlm_ngram": NGRAMS,
    "mlm_span": SPANS,
    "mlm_smoothed": SMOOTHED,
    "mlm_static": STATIC,
    "mlm_duplicated": DUPLICATED,
    "rtd": REPLACED_TOKENS,
}
"""Objectives by the last part of the name of their tasks."""


def add_masked_objectives(name: str, source: seqio.DataSource, *, field: str = "text") -> tuple[str, ...]:
    """Register every one of `OBJECTIVES` on a source of documents, and return the names of the tasks.

        NAME_mlm_exact         max(1, round(0.15 n)) tokens of n
        NAME_mlm_rounded       0.15 n tokens, rounded up or down at random (RoBERTa)
        NAME_mlm_whole_word    whole words
        NAME_mlm_ngram         n-grams of up to three words (ALBERT)
        NAME_mlm_span          spans of up to ten words (SpanBERT)
        NAME_mlm_smoothed      rare tokens more often (XLM)
        NAME_mlm_static        the same masks in every epoch
        NAME_mlm_duplicated    ten masks of each text, in turn (BERT)
        NAME_rtd               85 % masked, 15 % kept, for a generator and a discriminator (ELECTRA)

    All make inputs, targets and weights, choose 15 % and treat them 80/10/10 if nothing else is said; NAME_mlm of
    `registry.add_objectives` chooses each token by itself.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text.
        field: the name of that field.
    """
    for suffix, objective in OBJECTIVES.items():
        registry.add_objective(f"{name}_{suffix}", source, objective, field=field)
    return tuple(f"{name}_{suffix}" for suffix in OBJECTIVES)
