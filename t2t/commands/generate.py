"""`t2t generate MODEL --input FILE`: one continuation or answer per line, as JSON lines in the order of the input."""

import dataclasses
import random
from collections.abc import Sequence
from typing import Annotated

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.commands import lines as lines_lib
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Generate(arguments_lib.Processes):
    """Generate text for every line of a file: JSON lines {"input", "output"} in the order of the input.

    Several processes, on one host or many, share the batches; the first one writes.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A run, checkpoint, model or Hugging Face directory."""
    input: Annotated[str, tyro.conf.arg(aliases=["-i"])] = "-"
    """File of texts, one a line (a .jsonl file: the column --field); - is standard input."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "-"
    """File to write; - is standard output."""
    field: str = "text"
    """Column of a .jsonl input that holds the text."""
    beams: int = 1
    """Beams of the search; 1 is greedy or sampled."""
    max_tokens: int = 64
    """Tokens generated at most for each text."""
    min_tokens: int = 0
    """Tokens generated at least for each text."""
    temperature: float = 0.0
    """Of sampling; 0 takes the most probable token."""
    top_k: int | None = None
    """Sample among the most probable tokens, so many."""
    top_p: float | None = None
    """Sample among the most probable tokens, up to so much probability (fraction in (0, 1])."""
    length_penalty: float = 0.6
    """Exponent of the penalty ((5 + length) / 6) by which the score of a beam is divided."""
    start: str | None = None
    """Special token the decoder starts with instead of the model's own: for mBART the language to write, ro_RO."""
    seed: int = 0
    """Of sampling; what is drawn depends on --batch-size too."""
    batch_size: int = 64
    """Texts generated together, and written when they are done."""


def run(arguments: Sequence[str]) -> int:
    """Load the model, generate, write."""
    options = arguments_lib.parse(Generate, arguments, command="generate")
    lines_lib.check_processes(options.input, options)
    texts = lines_lib.read_texts(options.input, field=options.field)
    names = ("beams", "max_tokens", "min_tokens", "temperature", "top_k", "top_p", "length_penalty", "batch_size")
    how = {name: getattr(options, name) for name in names}
    import t2t
    from t2t.decode import decoding

    try:  # before the model is loaded, which may take long
        decoding.Decoding(eos_id=None, **{name: value for name, value in how.items() if name != "batch_size"})
    except ValueError as error:
        raise UsageError(str(error)) from error
    with lines_lib.joined(options), lines_lib.writer(options.output, source=options.input) as write:
        model = t2t.load(options.model)
        lines_lib.check_model(model, name=options.model)

        def answer(number: int, batch: list[str]) -> list[dict[str, str]]:
            seed = _seed_of(number, seed=options.seed)
            with lines_lib.name_lines(options.input, first=1 + number * options.batch_size):
                generated = model.generate(batch, seed=seed, start=options.start, **how)
            return [{"input": text, "output": output} for text, output in zip(batch, generated, strict=True)]

        for row in lines_lib.shared(lines_lib.batches(texts, size=options.batch_size, label="generating"), answer):
            write(row)
    return 0


def _seed_of(number: int, *, seed: int) -> int:
    """A seed for each batch, so that equal texts in two of them are not answered by equal draws."""
    return random.Random(f"{seed} {number}").getrandbits(31)
