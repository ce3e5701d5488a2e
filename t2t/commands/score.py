"""`t2t score MODEL --input FILE`: the log-probability of every line, as JSON lines in the order of the input."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.commands import lines as lines_lib
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score(arguments_lib.Processes):
    """Score every line of a file: JSON lines {"input", "score"}, natural logarithms, in the order of the input.

    An encoder-decoder scores targets given inputs: lines are then INPUT, a tab, TARGET. A decoder scores a whole line,
    or what follows a tab given what comes before it. Several processes share the batches; the first one writes.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A run, checkpoint, model or Hugging Face directory."""
    input: Annotated[str, tyro.conf.arg(aliases=["-i"])] = "-"
    """File of texts, one a line (a .jsonl file: the column --field); - is standard input."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "-"
    """File to write; - is standard output."""
    field: str = "text"
    """Column of a .jsonl input that holds the text."""
    reduction: Literal["sum", "mean"] = "sum"
    """The log-probability of the whole text, or per token."""
    batch_size: int = 64
    """Texts scored together, and written when they are done."""


def run(arguments: Sequence[str]) -> int:
    """Load the model, score, write."""
    options = arguments_lib.parse(Score, arguments, command="score")
    lines_lib.check_processes(options.input, options)
    texts = lines_lib.read_texts(options.input, field=options.field)
    pairs = [_pair(text, place=f"line {number}") for number, text in enumerate(texts, start=1)]
    import t2t
    from t2t.models.encoder_decoder import EncoderDecoderConfig

    with lines_lib.joined(options), lines_lib.writer(options.output, source=options.input) as write:
        model = t2t.load(options.model)
        lines_lib.check_model(model, name=options.model)
        single = next((number for number, pair in enumerate(pairs, start=1) if isinstance(pair, str)), None)
        if single is not None and isinstance(model.config, EncoderDecoderConfig):
            raise UsageError(
                f"line {single} of {options.input} has no tab, and {options.model} scores a target given an input: "
                "write INPUT, a tab, TARGET"
            )
        both = list(zip(texts, pairs, strict=True))

        def measure(number: int, batch: list[Any]) -> list[dict[str, Any]]:
            items = [pair for _, pair in batch]
            with lines_lib.name_lines(options.input, first=1 + number * options.batch_size):
                scores = model.score(items, reduction=options.reduction, batch_size=options.batch_size)
            return [{"input": text, "score": float(score)} for (text, _), score in zip(batch, scores, strict=True)]

        for row in lines_lib.shared(lines_lib.batches(both, size=options.batch_size, label="scoring"), measure):
            write(row)
    return 0


def _pair(text: str, *, place: str) -> str | tuple[str, str]:
    first, tab, second = text.partition("\t")
    if tab and "\t" in second:
        raise UsageError(f"{place} has more than one tab: {text!r}; write INPUT, one tab, TARGET")
    return (first, second) if tab else text
