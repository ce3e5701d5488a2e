"""How the work of making a task's tokens is divided: what workers do, and what has to be done in one go.

Tokenising is most of the work and is done document by document; so a task is cut at `preprocessors.tokenize`.

    before   reading and naming of texts, in order; by readers of files, where that is all the source needs
    at it    blocks of documents, in any number of processes
    behind   nothing, or `preprocessors.Chunk`: pieces of a text are found by their place in it. Anything else runs as
             it would without a cache, on the tokens that the workers have made

`sentence_formats.TokenizeSentences` is such a place too. A task that has none is read as it would be without a cache.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t.data import preprocessors  # isort: skip - sets up TensorFlow
import seqio

from t2t.data.cache_directory import group_name
from t2t.data.file_source import FileSource
from t2t.data.host_tensorflow import tf
from t2t.data.mapped_store import Pieces
from t2t.data.one_shard import reads_as
from t2t.data.reading import reading
from t2t.data.registry import TextSource
from t2t.data.sentence_formats import SENTENCE_LENGTHS, TokenizeSentences
from t2t.data.text_files import Skipped
from t2t.data.token_blocks import Cut, Prefix, Rekey, Row, SentenceTokenizer, Tokenizer
from t2t.data.vocabularies import SeqioVocabulary

Step = Callable[..., tf.data.Dataset]

EXACT = (tf.string, tf.bool, tf.uint8, tf.int8, tf.int16, tf.int32, tf.int64, tf.float32)
"""Types that go through a shard unchanged."""

ENDINGS = (seqio.preprocessors.append_eos, seqio.preprocessors.append_eos_after_trim)
"""Steps that look at tokens alone."""

_LATE_FIELDS = {"sequence_length", "output_features"}
_CHUNK_FIELDS = {"corruption", "across_documents", "end_documents", *_LATE_FIELDS}
_SENTENCES_FIELDS = {"feature", "wrapped", *_LATE_FIELDS}


@dataclass(frozen=True, kw_only=True)
class Work:
    """A task cut at its tokeniser."""

    groups: Sequence[tuple[str, Any]]
    """The parts of the source in their order, each a name and what `rows` takes."""
    rows: Callable[[Any, Skipped], Iterator[Row]]
    """The rows of a part."""
    tokenizer: Tokenizer | SentenceTokenizer
    pieces: Pieces | None = None
    """How examples are cut from the tokens of all rows, where that is all there is to do."""
    rest: Sequence[Step] = ()
    """What is left to do with the tokens, in one go."""
    dtypes: Mapping[str, tf.DType] = dataclasses.field(default_factory=dict)
    """Types of features that are no texts, for the rest."""
    untouched: frozenset[str] = frozenset()
    """Texts that are not tokenised, and get lost."""
    can_be_shared: bool = False
    """Whether other machines can read the rows too."""


def divide(task: seqio.Task, split: str, lengths: Mapping[str, int], *, size: int) -> Work | None:
    """The work on a split of a task without its corruption, in groups of files of `size` bytes; None if it is in one.

    Raises:
        CorpusError: files have vanished.
    """
    steps = task.preprocessors
    place = next((i for i, step in enumerate(steps) if is_tokenize(step) or _is_sentences(step)), None)
    if place is None or task.supports_caching:
        return None
    before, step, rest = steps[:place], steps[place], list(steps[place + 1 :])
    work = _of_texts(task, split, before, step, size=size) or _of_dataset(task, split, before, step, lengths)
    if work is None or isinstance(work.tokenizer, SentenceTokenizer):
        return work and dataclasses.replace(work, rest=rest)
    cut = None
    if rest and is_chunk(rest[0]):
        cut = cut_of(rest.pop(0), task, lengths)
    is_text = cut is not None and cut.across_documents and cut.length is not None
    if rest and (is_text or not _needs_no_texts(rest, work, step)):
        return None
    tokenizer = dataclasses.replace(work.tokenizer, cut=cut)
    pieces = Pieces(feature=cut.feature, length=cut.length) if is_text else None
    return dataclasses.replace(work, tokenizer=tokenizer, pieces=pieces, rest=rest)


def is_tokenize(step: Step) -> bool:
    """Whether a step is `preprocessors.tokenize`."""
    if isinstance(step, functools.partial):
        return step.func is preprocessors.tokenize and not step.args and set(step.keywords) <= {"copy_pretokenized"}
    return step is preprocessors.tokenize


def _is_sentences(step: Step) -> bool:
    return type(step) is TokenizeSentences and {f.name for f in dataclasses.fields(step)} == _SENTENCES_FIELDS


def _needs_no_texts(rest: Sequence[Step], work: Work, tokenize: Step) -> bool:
    if all(step in ENDINGS for step in rest):
        return True
    keeps_copies = not isinstance(tokenize, functools.partial) or tokenize.keywords.get("copy_pretokenized", True)
    return not (work.untouched or keeps_copies)


def is_chunk(step: Step) -> bool:
    """Whether a step is `preprocessors.Chunk` as it is known here."""
    return type(step) is preprocessors.Chunk and {f.name for f in dataclasses.fields(step)} == _CHUNK_FIELDS


def cut_of(chunk: preprocessors.Chunk, task: seqio.Task, lengths: Mapping[str, int]) -> Cut:
    """What a chunk does to the tokens of a task.

    Raises:
        ValueError: it ends documents, and the vocabulary has no EOS.
    """
    bound = chunk.corruption.bind(lengths, task.output_features)
    vocabulary = task.output_features[chunk.corruption.feature].vocabulary
    if chunk.end_documents and vocabulary.eos_id is None:
        raise ValueError("end_documents=True needs a vocabulary with EOS")
    return Cut(
        feature=chunk.corruption.feature,
        eos_id=vocabulary.eos_id if chunk.end_documents else None,
        length=bound.raw_length,
        across_documents=chunk.across_documents,
    )


def _of_texts(task: seqio.Task, split: str, before: Sequence[Step], tokenize: Step, *, size: int) -> Work | None:
    """Of texts that are read without TensorFlow."""
    steps = [without_tensorflow(step) for step in before]
    if None in steps:
        return None
    source = task.source
    if reads_as(source, FileSource):
        files = source.groups(split, size=size)
        groups: list[tuple[str, Any]] = [(group_name(number), group) for number, group in enumerate(files)]
        example: Row = dict.fromkeys(source.reader.fields or (source.reader.key,), "")
        rows, is_shared = source.reader.rows, True
    elif reads_as(source, TextSource):
        texts = source.rows(split)
        groups, is_shared = [(group_name(0), split)], False
        example = texts[0] if len(texts) else {}
        rows = functools.partial(_texts_of, source)
    else:
        return None
    for step in steps:
        example = step(example)
    tokenizer = _tokenizer(task, tokenize, set(example))
    if tokenizer is None or not all(isinstance(value, str) for value in example.values()):
        return None
    return Work(
        groups=groups,
        rows=rows,
        tokenizer=dataclasses.replace(tokenizer, steps=tuple(steps)),
        untouched=frozenset(example) - set(task.output_features),
        can_be_shared=is_shared,
    )


def _texts_of(source: TextSource, split: str, skipped: Skipped) -> Iterator[Row]:
    del skipped
    yield from source.rows(split)


def without_tensorflow(step: Step) -> Callable[[Row], Row] | None:
    """What a step does to one row of texts; None if it is none of those that are known."""
    if type(step) is preprocessors.TextToText:
        return Prefix(prefix=step.prefix, inputs=step.inputs, targets=step.targets)
    if isinstance(step, functools.partial) and step.func is seqio.preprocessors.rekey:
        if not step.args and set(step.keywords) == {"key_map"} and step.keywords["key_map"]:
            return Rekey(names=dict(step.keywords["key_map"]))
    return None


def _tokenizer(task: seqio.Task, step: Step, texts: set[str]) -> Tokenizer | SentenceTokenizer | None:
    """For these features that are texts; None where one has a vocabulary that is not ours."""
    features = {name: feature.vocabulary for name, feature in task.output_features.items() if name in texts}
    if not all(isinstance(vocabulary, SeqioVocabulary) for vocabulary in features.values()):
        return None
    if _is_sentences(step):
        if step.feature not in features:
            return None
        vocabulary = features[step.feature].vocabulary
        return SentenceTokenizer(
            vocabulary=vocabulary, feature=step.feature, wrapped=step.wrapped, lengths=SENTENCE_LENGTHS
        )
    return Tokenizer(vocabularies={name: vocabulary.vocabulary for name, vocabulary in features.items()})


def _of_dataset(
    task: seqio.Task, split: str, before: Sequence[Step], tokenize: Step, lengths: Mapping[str, int]
) -> Work | None:
    """Of whatever a source and its preprocessors give; None where something would get lost on the way."""
    with reading(task, split):
        dataset = task.source.get_dataset(split=split, shuffle=False, seed=0)
        with seqio.utils.map_seed_manager(0):
            dataset = task._preprocess_dataset(dataset, before, sequence_length=lengths)
            draws = seqio.utils._NEXT_MAP_SEED != 0
    spec = dataset.element_spec
    if draws or not isinstance(spec, dict) or not all(isinstance(s, tf.TensorSpec) for s in spec.values()):
        return None
    texts = {name for name, s in spec.items() if s.dtype == tf.string}
    others = {name: s.dtype for name, s in spec.items() if name not in texts}
    ranks = [s.shape.rank for name, s in spec.items()]
    if any(rank not in (0, 1) for rank in ranks) or not set(others.values()) <= set(EXACT):
        return None
    tokenizer = _tokenizer(task, tokenize, texts)
    if tokenizer is None or any(spec[name].shape.rank for name in texts & set(task.output_features)):
        return None

    def rows(part: Any, skipped: Skipped) -> Iterator[Row]:
        del part, skipped
        with reading(task, split):
            yield from dataset.as_numpy_iterator()

    return Work(
        groups=[(group_name(0), None)],
        rows=rows,
        tokenizer=tokenizer,
        dtypes=others,
        untouched=frozenset(texts) - set(task.output_features),
    )
