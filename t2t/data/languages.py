"""Registering the pretraining objectives on a corpus of many languages, and mixtures that sample languages.

Left alone, a mixture would see little of the languages that have little text. So language l is read in proportion to
n_l ** exponent of its n_l examples: 1 is their own proportion, 0 makes all languages equal.

    0.7    multilingual BERT, XLM      0.5    the vocabulary of XLM      0.3    mT5, XLM-R

Reference: Conneau and Lample, "Cross-lingual Language Model Pretraining", arXiv:1901.07291, section 3.1; Xue et al.,
"mT5: A massively multilingual pre-trained text-to-text transformer", arXiv:2010.11934, section 3.2.
Differs: they count sentences or pages; here examples are pieces of text of one length, so that tokens are counted.
"""

from collections.abc import Mapping

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import mixing


def add_languages(
    name: str, sources: Mapping[str, seqio.DataSource], *, exponent: float, field: str = "text"
) -> tuple[str, ...]:
    """Register the objectives of `registry.add_objectives` on each language, and a mixture of all for each objective.

        NAME_LANGUAGE_OBJECTIVE    such as mc4_sw_span_corruption
        NAME_OBJECTIVE             all languages, sampled with the exponent

    A mixture reads all of its languages, each by the host's memory or a token cache (`t2t cache`).

    Args:
        name: of the corpus, the first part of all names.
        sources: of documents, by language; in names of tasks "-" becomes "_".
        exponent: of the mixtures, at least 0.
        field: the name of the field of text.

    Returns:
        The names of the mixtures.

    Raises:
        ValueError: a negative exponent, or no language.
    """
    if not sources:
        raise ValueError(f"{name}: there must be at least one language")
    rate = mixing.by_exponent(exponent)
    parts: dict[str, dict[str, mixing.Rate]] = {}
    for language, source in sources.items():
        prefix = f"{name}_{language.replace('-', '_')}"
        for task in registry.add_objectives(prefix, source, field=field):
            parts.setdefault(f"{name}{task.removeprefix(prefix)}", {})[task] = rate
    for mixture, rates in parts.items():
        registry.add_mixture(mixture, rates)
    return tuple(parts)
