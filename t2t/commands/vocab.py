"""`t2t vocab train`: a SentencePiece vocabulary of your own text."""

import dataclasses
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError

FILES = ("vocabulary.json", "sentencepiece.model")
"""What is written, and written over."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabTrain:
    """Train a SentencePiece vocabulary: pad 0, eos 1, unk 2, then pieces, a mask token and the sentinels of T5."""

    input: Annotated[tuple[str, ...], tyro.conf.arg(aliases=["-i"])] = ()
    """Text files, or globs of them (txt, md, jsonl, csv, tsv, parquet, also gzipped)."""
    corpus: Literal["pydocs"] | None = None
    """The embedded corpus instead of files; its training split."""
    field: str = "text"
    """Column that holds the text in jsonl, tsv and parquet files."""
    size: int
    """Ids in all, sentinels and mask included."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])]
    """Directory to write."""
    sentinels: int = 100
    """Number of <extra_id_k>, for span corruption."""
    mask: bool = True
    """Whether there is a mask token, for masked language modelling."""
    kind: Literal["unigram", "bpe"] = "unigram"
    """Unigram language model (as T5) or byte-pair encoding."""
    byte_fallback: bool = False
    """Spell characters outside the vocabulary as bytes (256 more ids)."""
    character_coverage: float = 0.9995
    """Fraction in [0.98, 1] of the characters of the text that get an id of their own."""
    max_lines: int = 2_000_000
    """Lines that are read at most, from the first."""


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
    output = pathlib.Path(options.output)
    _check_output(output)
    from t2t import vocabulary as vocabulary_lib

    try:
        lines = _read(options)
        print(f"training a vocabulary of {options.size:,} ids on {len(lines):,} lines", flush=True)
        began = time.monotonic()
        trained = vocabulary_lib.train_sentencepiece(
            lines,
            size=options.size,
            sentinels=options.sentinels,
            mask=options.mask,
            model_type=options.kind,
            byte_fallback=options.byte_fallback,
            character_coverage=options.character_coverage,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    trained.save(output)
    sample = lines[:10_000]
    ids = sum(map(len, trained.encode_batch(sample)))
    print(
        f"wrote {output} after {time.monotonic() - began:.0f} s: {trained.size:,} ids, "
        f"{sum(map(len, sample)) / max(ids, 1):.2f} characters per token"
    )
    return 0


def _check_output(output: pathlib.Path) -> None:
    """Only a new or empty directory, or one of a vocabulary alone: a run or model would be read with the new one."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file; --output names a directory")
    others = [] if not output.exists() else sorted({path.name for path in output.iterdir()} - set(FILES))
    if others:
        raise UsageError(f"{output} holds {', '.join(others[:3])}, no vocabulary alone: give another --output")


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

        for document in corpora.read_texts(options.input, field=options.field, unit="line"):
            yield from document.splitlines()
