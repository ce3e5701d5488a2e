"""`t2t import SOURCE OUT_DIR`: a Hugging Face directory as a model directory, one parameter at a time."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated, Literal

import tyro

from t2t.commands import arguments as arguments_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Import:
    """Write a Hugging Face model as a directory that every command reads (`--init`, generate, score, export).

    It takes safetensors, pytorch_model.bin and flax_model.msgpack, in one file or in shards, and T5's original
    checkpoints, T5X's and TensorFlow's, which hold no config.json. Nothing is left out or made up unless you name it:
    what does not fit is listed.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A Hugging Face directory, or the name of a repository on the Hub such as google-t5/t5-small."""
    output: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT_DIR")]
    """The directory to write."""
    head: Literal["own", "none", "pretraining", "masked", "enhanced"] = "own"
    """Which head the model shall have: that of the files, none, that of pretraining, that of masked words, or this one
    with DeBERTa's enhanced mask decoder."""
    vocabulary: str | None = None
    """Files of the vocabulary, where the directory holds none: sentencepiece.model of T5's original checkpoints."""
    without_vocabulary: bool = False
    """Leave the vocabulary of the directory out."""
    drop: tuple[str, ...] = ()
    """Patterns of tensors without a place in the model, to leave out, such as 'score.*'."""
    fresh: tuple[str, ...] = ()
    """Patterns of parameters that the files lack, to initialise, such as 'head/*'."""
    ignore_attributes: tuple[str, ...] = ()
    """Attributes of config.json known to be without effect."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type in which parameters are stored."""
    overwrite: bool = False
    """Replace files of a directory that is not empty."""


def run(arguments: Sequence[str]) -> int:
    """Understand the directory and write it anew."""
    options = arguments_lib.parse(Import, arguments, command="import")
    output = pathlib.Path(options.output)
    from t2t import heads
    from t2t.errors import UsageError
    from t2t.hf import hub, load, model_directory
    from t2t.vocabulary import Vocabulary

    if options.without_vocabulary and options.vocabulary is not None:
        raise UsageError("--vocabulary and --without-vocabulary cannot both be: give one")
    model_directory.check_directory(output)
    arguments_lib.check_output(output, overwrite=options.overwrite)
    chosen = {
        "none": heads.BARE,
        "pretraining": heads.PRETRAINING,
        "masked": heads.MaskedLM(),
        "enhanced": heads.EnhancedMaskedLM(),
    }
    opened = load.open_directory(
        hub.find(options.source),
        head=chosen.get(options.head),
        drop=options.drop,
        fresh=options.fresh,
        ignore_attributes=options.ignore_attributes,
    )
    if options.without_vocabulary:
        opened = dataclasses.replace(opened, vocabulary=None)
    elif options.vocabulary is not None:
        vocabulary = pathlib.Path(options.vocabulary)
        try:
            size, rows = Vocabulary.load(vocabulary).size, opened.config.vocab_size
        except (OSError, ValueError) as error:
            raise UsageError(f"--vocabulary: {error}") from error
        if size > rows:
            raise UsageError(
                f"{vocabulary} has {size} ids, the model {rows} rows: it is the vocabulary of another model"
            )
        opened = dataclasses.replace(opened, vocabulary=vocabulary)
    for names, what in ((opened.dropped, "left out"), (opened.fresh, "fresh")):
        if names:
            print(f"{what}: {', '.join(names)}")
    model_directory.write(output, opened, dtype=options.dtype)
    arguments_lib.list_files(output)
    return 0
