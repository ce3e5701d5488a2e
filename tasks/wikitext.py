"""The pretraining objectives on WikiText-103 and WikiText-2, good articles of the English Wikipedia, from files.

    wikitext103_span_corruption   wikitext103_mlm   wikitext103_causal_lm   wikitext103_prefix_lm
    wikitext2_span_corruption     wikitext2_mlm     wikitext2_causal_lm     wikitext2_prefix_lm

TFDS does not have it. Fetch it once, some 300 MB, into corpora/wikitext (or the directory that T2T_CORPORA names):

    hf download Salesforce/wikitext --repo-type dataset --local-dir corpora/wikitext --include 'wikitext-103-raw-v1/*'

The rows of its files are lines; a document is an article here, without its empty lines. The text stays tokenised
(spaces before punctuation, @-@ and @,@ inside words), as published results count words. Splits are train, validation
and test. Reading parquet needs pyarrow.

Reference: Merity et al., "Pointer Sentinel Mixture Models", arXiv:1609.07843.
"""

import itertools
import re
from collections.abc import Iterable, Iterator

from t2t.data import public_sources, registry
from t2t.data.host_tensorflow import tf

_TITLE = re.compile(r"^ = (?!= ).*(?<! =) = $")
"""Titles of articles, " = A title = "; those of sections have two signs and more on each side."""


def articles(lines: Iterable[str]) -> Iterator[str]:
    r"""The articles of these lines: each begins with a title, above and below which there is an empty line.

    >>> list(articles([" ", " = One = ", " ", " = 5 = ", " Text . ", " ", " = Two = ", " ", " More . "]))
    ['= One =\n= 5 =\nText .', '= Two =\nMore .']
    """
    article: list[str] = []
    for line, following in itertools.pairwise(itertools.chain(lines, [""])):
        is_title = _TITLE.match(line.rstrip("\n")) is not None and not following.strip()
        if is_title and article:
            yield "\n".join(article)
            article = []
        if line.strip():
            article.append(line.strip())
    if article:
        yield "\n".join(article)


def join_lines(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Articles from lines."""

    def make() -> Iterator[dict[str, str]]:
        lines = (row["text"].decode("utf-8") for row in dataset.as_numpy_iterator())
        return ({"text": text} for text in articles(lines))

    return tf.data.Dataset.from_generator(make, output_signature={"text": tf.TensorSpec([], tf.string)})


def source(folder: str) -> public_sources.PreparedSource:
    """The articles of one of the sizes, by the name of its folder on the Hub."""
    files = {split: [f"{split}-*.parquet"] for split in ("train", "validation", "test")}
    fetch = f"hf download Salesforce/wikitext --repo-type dataset --local-dir corpora/wikitext --include '{folder}/*'"
    lines = public_sources.FolderSource(f"wikitext/{folder}", files, how=fetch, fields=("text",))
    return public_sources.PreparedSource(lines, join_lines, keeps_number=False)


registry.add_objectives("wikitext103", source("wikitext-103-raw-v1"))
registry.add_objectives("wikitext2", source("wikitext-2-raw-v1"))
