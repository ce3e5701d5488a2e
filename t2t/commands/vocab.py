"""`t2t vocab train`: a vocabulary of your own text."""

import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

import tyro

from t2t import staging
from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError

FILES = ("vocabulary.json", "sentencepiece.model", "tokenizer.json")
"""What is written, and written over."""

_SENTENCEPIECE = ("sentinels", "mask", "modes", "framed", "lowercase", "byte_fallback", "character_coverage")
OPTIONS = {
    "sentencepiece-unigram": _SENTENCEPIECE,
    "sentencepiece-bpe": _SENTENCEPIECE,
    "wordpiece": ("sentinels", "modes", "lowercase", "strip_accents", "space_chinese", "character_coverage"),
    "byte-bpe": ("sentinels", "mask", "modes", "end_of_text", "add_prefix_space"),
}
"""The options that each kind of vocabulary has."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabTrain:
    """Train a vocabulary. The same text gives the same vocabulary.

    SentencePiece (as T5's): <pad> 0, </s> 1, <unk> 2, pieces, modes, <mask>, sentinels; or (as ALBERT's, with --framed)
    <pad> 0, <unk> 1, [CLS] 2, [SEP] 3, [MASK] 4, pieces. Word pieces (as BERT's): [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3,
    [MASK] 4, pieces. Byte-level BPE (as RoBERTa's): <s> 0, <pad> 1, </s> 2, <unk> 3, bytes, pieces, <mask>; or (as
    GPT-2's, with --end-of-text) bytes, pieces, <|endoftext|>.
    """

    input: Annotated[tuple[str, ...], tyro.conf.arg(aliases=["-i"])] = ()
    """Files, globs or folders of the kinds that --data.files of t2t train reads (txt, jsonl, parquet, also gzipped)."""
    corpus: Literal["pydocs"] | None = None
    """The embedded corpus instead of files; its training split."""
    field: str = "text"
    """Column of the text in files of records."""
    on_error: Literal["stop", "skip"] = "stop"
    """Whether a document that cannot be read (not UTF-8, no JSON) ends the reading, or is left out and counted."""
    size: int
    """Ids in all, special tokens and sentinels included."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])]
    """Directory to write."""
    kind: Literal["sentencepiece-unigram", "sentencepiece-bpe", "wordpiece", "byte-bpe"] = "sentencepiece-unigram"
    """How text is cut: SentencePiece's unigram model or its byte-pair encoding, BERT's word pieces, or byte-pair
    encoding of bytes, in which every text has ids."""
    sentinels: int | None = None
    """Number of <extra_id_k>, for span corruption; None is 100 for SentencePiece, and 0 for others and --framed."""
    modes: bool = False
    """Whether there are UL2's mode tokens, [NLU], [NLG] and [S2S]; its extreme denoisers also need 300 sentinels."""
    mask: bool = True
    """Whether there is a mask token, for masked language modelling. Word pieces, and --framed, always have one."""
    framed: bool = False
    """SentencePiece: have [CLS] and [SEP], which stand around the texts of encoders, and read text without accents."""
    byte_fallback: bool = False
    """SentencePiece: spell characters outside the vocabulary as bytes (256 more ids)."""
    character_coverage: float = 0.9995
    """SentencePiece and word pieces: fraction in [0.98, 1] of the text's characters that get an id of their own."""
    lowercase: bool = True
    """Word pieces and framed SentencePiece: put text in lower case."""
    strip_accents: bool | None = None
    """Word pieces: leave accents out; None does as --lowercase."""
    space_chinese: bool = True
    """Word pieces: every Chinese character is a word of its own."""
    end_of_text: bool = False
    """Byte BPE: <|endoftext|> instead of <s>, <pad>, </s> and <unk>."""
    add_prefix_space: bool = False
    """Byte BPE: read the first word of a text as after a space."""
    max_lines: int = 2_000_000
    """Lines that are read at most, from the first."""
    overwrite: bool = False
    """Replace a vocabulary that is in the directory already."""


def run(arguments: Sequence[str]) -> int:
    """Run the only thing done to vocabularies: train."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: t2t vocab train --input GLOB --size 32000 --output DIR   (t2t vocab train --help shows all)")
        return 0 if arguments else 2
    if arguments[0] != "train":
        raise UsageError(f"there is no command vocab {arguments[0]}; did you mean vocab train?")
    return _train(arguments_lib.parse(VocabTrain, arguments[1:], command="vocab train"))


def _train(options: VocabTrain) -> int:
    if bool(options.input) == (options.corpus is not None):
        raise UsageError("give either --input GLOB, your own files, or --corpus pydocs, the embedded text")
    if options.max_lines < 1:
        raise UsageError(f"--max-lines is {options.max_lines}; it must be positive")
    settings = _settings(options)
    output = pathlib.Path(options.output)
    _check_output(output, overwrite=options.overwrite)
    try:
        lines = _read(options)
        print(f"training a vocabulary of {options.size:,} ids on {len(lines):,} lines", flush=True)
        began = time.monotonic()
        trained = _trainer(options.kind)(lines, size=options.size, **settings)
    except ValueError as error:
        raise UsageError(str(error)) from error
    # The earlier one may have been of another kind: none of its files may stay.
    with staging.replacing(output, stale=FILES) as folder:
        trained.save(folder)
    sample = lines[:10_000]
    ids = sum(map(len, trained.encode_batch(sample)))
    print(
        f"wrote {output} after {time.monotonic() - began:.0f} s: {trained.size:,} ids, "
        f"{sum(map(len, sample)) / max(ids, 1):.2f} characters per token"
    )
    return 0


def _check_output(output: pathlib.Path, *, overwrite: bool) -> None:
    """Only a new or empty directory, or one of a vocabulary alone: a run or model would be read with the new one."""
    others = sorted({path.name for path in output.iterdir()} - {*FILES, staging.FOLDER}) if output.is_dir() else []
    if others:
        raise UsageError(f"{output} holds {', '.join(others[:3])}, no vocabulary alone: give another --output")
    arguments_lib.check_output(output, overwrite=overwrite)


def _settings(options: VocabTrain) -> dict[str, Any]:
    """The options of the kind; others that were given are refused, for they would do nothing."""
    defaults = {field.name: field.default for field in dataclasses.fields(VocabTrain)}
    for name in {name for names in OPTIONS.values() for name in names} - set(OPTIONS[options.kind]):
        if getattr(options, name) != defaults[name]:
            kinds = " or ".join(kind for kind, names in OPTIONS.items() if name in names)
            raise UsageError(f"--{name.replace('_', '-')} is for --kind {kinds}, not for {options.kind}")
    settings = {name: getattr(options, name) for name in OPTIONS[options.kind]}
    return {name: value for name, value in settings.items() if name != "sentinels" or value is not None}


def _trainer(kind: str) -> Callable[..., Any]:
    from t2t import vocabulary

    return {
        "sentencepiece-unigram": vocabulary.train_sentencepiece,
        "sentencepiece-bpe": functools.partial(vocabulary.train_sentencepiece, model_type="bpe"),
        "wordpiece": vocabulary.train_wordpiece,
        "byte-bpe": vocabulary.train_byte_bpe,
    }[kind]


def _read(options: VocabTrain) -> list[str]:
    lines: list[str] = []
    for line in _lines(options):
        if line.strip():
            lines.append(line)
        if len(lines) >= options.max_lines:
            break
    return lines


def _lines(options: VocabTrain) -> Iterator[str]:
    if options.corpus == "pydocs":
        from t2t.data import pydocs

        for document in pydocs.split_documents("train"):
            yield from document.text.splitlines()
    else:
        from t2t.data import corpora

        read = corpora.read_texts(options.input, field=options.field, unit="line", on_error=options.on_error)
        for document in read:
            yield from document.splitlines()
