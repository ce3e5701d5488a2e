"""Labelled examples made of the pydocs corpus: text-to-text pairs whose answers stand in the documents themselves.

    topic: a passage               -> the package it documents, whose own name is hidden in it
    kind: a passage                -> module, class, function or language
    cloze: a sentence with a gap   -> the frequent short word that is missing
    summarize: a docstring's body  -> its first line (for longer runs)

Pure functions of the split: inputs carry their task prefix, an example belongs to the split of its document, and no
input occurs twice. The order is that of a hash, in which the examples of a class beyond a cap are left out: always
answering the most frequent one is right in about one case of ten (topic), two to five (kind) and fourteen (cloze).
"""

import collections
import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

from t2t.data import pydocs

GAP = "___"
"""Stands where a word was taken out; plain text, which every vocabulary can write."""

PASSAGE = 240  # characters from which on no further sentence is added
MAX_BODY = 1000  # characters of a docstring to summarise
MIN_PASSAGE = 80  # characters below which a passage says too little
MIN_TOPIC_PASSAGES = 40  # passages a package needs in the training split to be a topic
MAX_TOPIC = 250  # of one package in the training split
MAX_KIND = 1100  # of one kind in the training split
CLOZE_WORDS = ("and", "are", "as", "by", "for", "from", "if", "in", "is", "of", "on", "or", "to", "with")
CLOZE_CONTEXT = 8  # words on each side of the gap
MAX_CLOZE = 900  # sentences of one missing word in the training split
HELD_OUT_SHARE = 0.095  # of a cap, for validation and for test: the corpus holds out 8 % for each of them

_SENTENCE_END = re.compile(r"(?<=[.!?:;]) +")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    """A question in text and its answer in text."""

    inputs: str
    targets: str


def prose(text: str) -> list[str]:
    r"""The paragraphs of a text that are English rather than code or tables, each on one line.

    Example:
      >>> prose("Add a key.\n\n>>> add(1)\n\n   {'a': [1, 2]}")
      ['Add a key.']
    """
    kept = []
    for block in pydocs.paragraphs(text):
        line = " ".join(block.split())
        letters = sum(character.isalpha() or character == " " for character in line)
        is_code = line.startswith((">>>", "...")) or letters < 0.8 * len(line)
        if not is_code and not pydocs.HEADING.match(block):
            kept.append(line)
    return kept


def sentences(text: str) -> list[str]:
    """The sentences (and clauses before a colon or semicolon) of the prose of a text, in order."""
    return [sentence for line in prose(text) for sentence in _SENTENCE_END.split(line) if sentence]


def join_sentences(pieces: Iterable[str], *, characters: int) -> Iterator[str]:
    """Passages of whole sentences, each closed as soon as it has so many characters; twice as long ones are cut.

    Example:
      >>> list(join_sentences(["One two.", "Three.", "Four."], characters=10))
      ['One two. Three.', 'Four.']
    """
    passage = ""
    for piece in pieces:
        passage = f"{passage} {piece}".strip()
        if len(passage) >= characters:
            yield _cut(passage, 2 * characters)
            passage = ""
    if passage:
        yield passage


def hide_name(text: str, *, name: str) -> str:
    """The text with a gap wherever the package's name stands, in any case and inside longer identifiers too.

    Names of fewer than four letters are hidden as whole words and in front of capitals (`XMLReader`) only: `re` or `os`
    would tear up half of all words.

    Example:
      >>> hide_name("The asyncio loop of AsyncIOTestCase.", name="asyncio")
      'The ___ loop of ___TestCase.'
      >>> hide_name("XMLReader reads xml, most of it.", name="xml")
      '___Reader reads ___, most of it.'
    """
    if len(name) >= 4:
        return re.sub(re.escape(name), GAP, text, flags=re.IGNORECASE)
    word = re.sub(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", GAP, text, flags=re.IGNORECASE)
    return re.sub(rf"(?<![A-Za-z]){re.escape(name.upper())}(?=[A-Z])", GAP, word)


@functools.cache
def topic_pairs(split: str) -> tuple[tuple[str, str], ...]:
    """(package, passage) over all packages: neighbouring docstrings of one package, the package's name hidden."""
    grouped: dict[str, list[str]] = collections.defaultdict(list)
    for document in pydocs.split_documents(split):
        if document.kind != "language":
            grouped[document.package].extend(sentences(document.text))
    return tuple(
        (package, hide_name(passage, name=package))
        for package, pieces in grouped.items()
        for passage in join_sentences(pieces, characters=PASSAGE)
        if len(passage) >= MIN_PASSAGE
    )


@functools.cache
def topics() -> tuple[str, ...]:
    """The packages with enough training passages to be learned, by name: 20 to 30, depending on the Python version."""
    counts = collections.Counter(package for package, _ in topic_pairs("train"))
    return tuple(sorted(package for package, count in counts.items() if count >= MIN_TOPIC_PASSAGES))


@functools.cache
def kind_pairs(split: str) -> tuple[tuple[str, str], ...]:
    """(kind, passage) over all documents; a passage never joins two of them."""
    return tuple(
        (document.kind, passage)
        for document in pydocs.split_documents(split)
        for passage in join_sentences(sentences(document.text), characters=PASSAGE)
        if len(passage) >= MIN_PASSAGE
    )


@functools.cache
def cloze_pairs(split: str) -> tuple[tuple[str, str], ...]:
    """(word, sentence with a gap): of the frequent words of a sentence the one least frequent so far is taken out."""
    counts: collections.Counter[str] = collections.Counter()
    pairs = []
    pool = {piece for document in pydocs.split_documents(split) for piece in sentences(document.text)}
    for sentence in sorted(pool, key=_rank):
        words = sentence.split()
        gaps = [position for position, word in enumerate(words) if word in CLOZE_WORDS]
        if not gaps or len(words) < 6:
            continue
        gap = min(gaps, key=lambda position: (counts[words[position]], _rank(f"{position} {sentence}")))
        counts[words[gap]] += 1
        before, after = words[max(0, gap - CLOZE_CONTEXT) : gap], words[gap + 1 : gap + 1 + CLOZE_CONTEXT]
        pairs.append((words[gap], " ".join([*before, GAP, *after])))
    return tuple(pairs)


@functools.cache
def summarize_pairs(split: str) -> tuple[tuple[str, str], ...]:
    """(first line, body) of docstrings where both are long enough to mean something."""
    pairs = []
    for document in pydocs.split_documents(split):
        summary, _, body = document.text.partition("\n\n")
        text = _cut(" ".join(prose(body)), MAX_BODY)
        is_sentence = "\n" not in summary and len(summary) >= 20 and not summary.endswith(":")
        if document.kind != "language" and is_sentence and len(text) >= MIN_PASSAGE:
            pairs.append((summary, text))
    return tuple(pairs)


@functools.cache
def topic_examples(split: str) -> tuple[Example, ...]:
    """`topic:` and a passage -> the top-level package it documents, whose own name is hidden in it."""
    return _examples("topic", topic_pairs, split=split, cap=MAX_TOPIC, classes=topics())


@functools.cache
def kind_examples(split: str) -> tuple[Example, ...]:
    """`kind:` and a passage -> whether it documents a module, a class, a function, or the language."""
    return _examples("kind", kind_pairs, split=split, cap=MAX_KIND)


@functools.cache
def cloze_examples(split: str) -> tuple[Example, ...]:
    """`cloze:` and the words around a gap -> which of fourteen frequent words was there."""
    return _examples("cloze", cloze_pairs, split=split, cap=MAX_CLOZE)


@functools.cache
def summarize_examples(split: str) -> tuple[Example, ...]:
    """`summarize:` and the body of a docstring -> its first line."""
    return _examples("summarize", summarize_pairs, split=split)


EXAMPLES: dict[str, Callable[[str], tuple[Example, ...]]] = {
    "topic": topic_examples,
    "kind": kind_examples,
    "cloze": cloze_examples,
    "summarize": summarize_examples,
}
"""The examples of a split by task prefix."""


def most_frequent(targets: Iterable[str]) -> str:
    """The commonest target, the first by name among equals: the prediction of the majority baseline."""
    counts = collections.Counter(targets)
    return min(counts, key=lambda target: (-counts[target], target))


def first_words(inputs: str, *, words: int = 8) -> str:
    """The first words of the input after its prefix: the baseline of a summary."""
    return " ".join(inputs.split()[1 : 1 + words])


def _examples(
    prefix: str,
    pairs: Callable[[str], Iterable[tuple[str, str]]],
    *,
    split: str,
    cap: int | None = None,
    classes: Iterable[str] | None = None,
) -> tuple[Example, ...]:
    """Examples in the order of their hashes: at most `cap` of a class, and no text that stands in an earlier split."""
    found = pairs(split)  # refuses an unknown split
    earlier = pydocs.SPLITS[: [*pydocs.SPLITS].index(split)]
    seen = {pydocs.normalise(text) for other in earlier for _, text in pairs(other)}
    limit = cap if cap is None or split == "train" else round(cap * HELD_OUT_SHARE)
    allowed = None if classes is None else frozenset(classes)
    counts: collections.Counter[str] = collections.Counter()
    examples = []
    for target, text in sorted(found, key=lambda pair: (_rank(pair[1]), pair)):
        key = pydocs.normalise(text)
        if key in seen or (allowed is not None and target not in allowed) or counts[target] == limit:
            continue
        seen.add(key)
        counts[target] += 1
        examples.append(Example(inputs=f"{prefix}: {text}", targets=target))
    return tuple(examples)


def _rank(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters].rpartition(" ")[0]
