"""The README.md of an exported model: what the Hub reads, what people read, and code that runs."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import t2t


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """What only the person or program that trained a model knows about it."""

    name: str
    """How the model is called."""
    license: str | None = None
    """Identifier of the Hub, such as apache-2.0; None leaves it to the reader to ask."""
    languages: Sequence[str] = ()
    base_model: str | None = None
    """Model the training started from."""
    recipe: str = ""
    """How it was trained, in Markdown."""
    data: str = ""
    """What it was trained on, in Markdown."""
    datasets: Sequence[str] = ()
    """Names of data sets on the Hub."""
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Name -> value on held-out data, such as "pydocs_topic/accuracy"."""
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What identifies the run: step, hash of its config, revision."""
    example: str | None = None
    """An input the model was made for; None shows a neutral one."""


_TASKS = {
    "ForConditionalGeneration": ("AutoModelForSeq2SeqLM", "text2text-generation"),
    "WithLMHeadModel": ("AutoModelForMaskedLM", "fill-mask"),  # XLM's: the order here is the priority
    "LMHeadModel": ("AutoModelForCausalLM", "text-generation"),
    "ForCausalLM": ("AutoModelForCausalLM", "text-generation"),
    "ForMaskedLM": ("AutoModelForMaskedLM", "fill-mask"),
    "ForPreTraining": ("AutoModelForPreTraining", None),
    "ForSequenceClassification": ("AutoModelForSequenceClassification", "text-classification"),
    "ForTokenClassification": ("AutoModelForTokenClassification", "token-classification"),
    "ForQuestionAnswering": ("AutoModelForQuestionAnswering", "question-answering"),
    "ForQuestionAnsweringSimple": ("AutoModelForQuestionAnswering", "question-answering"),
    "ForMultipleChoice": ("AutoModelForMultipleChoice", None),
    "ForNextSentencePrediction": ("AutoModelForNextSentencePrediction", None),
    "DoubleHeadsModel": (None, None),  # which has no automatic class, and no more has the next
    "EncoderModel": (None, "feature-extraction"),
    "Model": ("AutoModel", "feature-extraction"),
}
"""Ending of a class of transformers -> its automatic class and the Hub's name of its task."""


def auto_class(architecture: str) -> str:
    """The automatic class by which transformers opens a class of its own.

    >>> auto_class("GPT2LMHeadModel")
    'AutoModelForCausalLM'
    """
    return _task(architecture)[0] or architecture


def _task(architecture: str) -> tuple[str | None, str | None]:
    return next(task for ending, task in _TASKS.items() if architecture.endswith(ending))


def render(
    card: Card,
    *,
    architecture: str,
    parameters: int,
    dtype: str,
    has_tokenizer: bool,
    mask_token: str | None = None,
    generate: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The text of README.md.

    Args:
        card: what is known about the training.
        architecture: transformers' class.
        parameters: their number.
        dtype: the type they are stored in.
        has_tokenizer: whether tokenizer files stand beside it.
        mask_token: for models that fill masks.
        generate: what `generate` has to be told; None for models that do not write.
        notes: what a user has to know, one sentence each.
    """
    code = snippet(card, architecture, has_tokenizer=has_tokenizer, mask_token=mask_token, generate=generate)
    sections = [
        f"# {card.name}",
        f"A `{architecture}` with {parameters:,} parameters ({dtype}), trained with "
        f"[t2t](https://pypi.org/project/t2t/) {t2t.__version__} in JAX.",
        f"## Use\n\n```python\n{code}```",
        "\n".join(f"- {note}" for note in notes),
        f"## Training\n\n{card.recipe}" if card.recipe else "",
        f"## Data\n\n{card.data}" if card.data else "",
        "## Results on held-out data\n\n| metric | value |\n|---|---|\n"
        + "\n".join(f"| {name} | {value:.4g} |" for name, value in _results(card).items())
        if _results(card)
        else "",
        "## Provenance\n\n"
        + "\n".join(f"- {name}: {value}" for name, value in {"t2t": t2t.__version__, **card.provenance}.items()),
    ]
    return _header(card, architecture) + "\n" + "\n\n".join(section for section in sections if section) + "\n"


def _header(card: Card, architecture: str) -> str:
    """The YAML block that the Hub reads. JSON values are YAML values."""
    task = _task(architecture)[1]
    fields = {
        "license": card.license,
        "language": list(card.languages),
        "library_name": "transformers",
        "pipeline_tag": task,
        "tags": ["t2t", "jax"],
        "base_model": card.base_model,
        "datasets": list(card.datasets),
        "model-index": _model_index(card, task),
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _model_index(card: Card, task: str | None) -> list[dict[str, Any]]:
    """Metrics as the Hub's tables want them; a name is DATASET/METRIC, or a metric alone."""
    results = []
    for name, value in _results(card).items():
        dataset, _, metric = name.rpartition("/")
        results.append(
            {
                "task": {"type": task or "other"},
                "dataset": {"name": dataset or "held-out", "type": dataset or "held-out"},
                "metrics": [{"type": metric, "value": float(value), "name": name}],
            }
        )
    return [{"name": card.name, "results": results}] if results else []


def _results(card: Card) -> dict[str, float]:
    """The metrics without the numbers of examples they were measured on."""
    return {name: value for name, value in card.metrics.items() if name.rpartition("/")[2] != "examples"}


def snippet(
    card: Card,
    architecture: str,
    *,
    has_tokenizer: bool,
    mask_token: str | None = None,
    generate: Mapping[str, Any] | None = None,
) -> str:
    """Code that opens the directory it stands in with transformers 4 or 5, without pipelines that 5 removed.

    Args:
        card: which may have an example.
        architecture: transformers' class.
        has_tokenizer: whether tokenizer files stand beside it; without them the code only opens the model.
        mask_token: for models that fill masks.
        generate: what `generate` has to be told; None for models that do not write.
    """
    auto = auto_class(architecture)
    lines = [
        f"from transformers import {'AutoTokenizer, ' if has_tokenizer else ''}{auto}",
        "",
        'path = "."  # this directory',
        f"model = {auto}.from_pretrained(path)",
    ]
    if not has_tokenizer:
        return "\n".join(lines) + "\n"
    mask = mask_token or ""
    text = card.example or {
        "AutoModelForMaskedLM": f"This is {mask}.",
        "AutoModelForPreTraining": f"This is {mask}.",
    }.get(auto, "This is a text.")
    given = json.dumps(text, ensure_ascii=False)
    if auto == "AutoModelForQuestionAnswering":
        given = f'"What is this?", {given}'
    lines += [
        "tokenizer = AutoTokenizer.from_pretrained(path)",
        f'inputs = tokenizer({given}, return_tensors="pt")',
    ]
    return "\n".join([*lines, *_use(auto, architecture, generate)]) + "\n"


_LABELS = (
    "ids = model(**inputs).logits[0].argmax(-1).reshape(-1).tolist()",
    "print([model.config.id2label[i] for i in ids])",
)
_USES = {
    "AutoModelForMaskedLM": (
        "logits = model(**inputs).logits[0]",
        "at = (inputs.input_ids[0] == tokenizer.mask_token_id).nonzero()[0, 0]",
        "print([tokenizer.decode([i]) for i in logits[at].topk(5).indices.tolist()])",
    ),
    "AutoModelForSequenceClassification": _LABELS,
    "AutoModelForTokenClassification": _LABELS,
    "AutoModelForQuestionAnswering": (
        "output = model(**inputs)",
        "start, end = int(output.start_logits[0].argmax()), int(output.end_logits[0].argmax())",
        "print(tokenizer.decode(inputs.input_ids[0, start : end + 1]))",
    ),
    "AutoModelForMultipleChoice": (
        "choices = {name: tensor[None] for name, tensor in inputs.items()}  # [texts, choices, length]",
        "print(model(**choices).logits)",
    ),
}
"""Automatic class -> what is done with `model` and `inputs`."""


def _use(auto: str, architecture: str, generate: Mapping[str, Any] | None) -> Sequence[str]:
    """What is done with `model` and `inputs`."""
    if auto in ("AutoModelForSeq2SeqLM", "AutoModelForCausalLM") and generate is not None:
        options = "".join(f", {name}={value!r}" for name, value in generate.items())
        return (
            f"output = model.generate(**inputs{options})",
            "print(tokenizer.decode(output[0], skip_special_tokens=True))",
        )
    if architecture.endswith("DoubleHeadsModel"):
        return ("print(model(inputs.input_ids[None]).mc_logits)  # [texts, choices, length]",)
    return _USES.get(auto, ("print(model(**inputs)[0].shape)",))
