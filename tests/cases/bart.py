from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "d_model": 24,
    "encoder_layers": 2,
    "encoder_ffn_dim": 28,
    "encoder_attention_heads": 4,
    "decoder_layers": 3,
    "decoder_ffn_dim": 36,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    fields = {key: changes.pop(key) for key in ("end", "is_decoding", "unread", "exported") if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, side="both", **fields)


UNTIED = {"tie_word_embeddings": False, "unread": frozenset({"model.shared.weight"})}


def cases(name: str, prefix: str, **changes: object) -> tuple[Case, ...]:
    """The classes of a family of BART's form."""
    model, sequence = f"{prefix}ForConditionalGeneration", f"{prefix}ForSequenceClassification"
    # Exports without a vocabulary name the published end.
    ends = {"end": 2, "eos_token_id": 2}
    return (
        case(name, model, is_decoding=True, **changes),
        # Its decoder starts with another token than that which ends its texts.
        case(f"{name}-deep", model, encoder_layers=4, decoder_layers=1, activation_function="relu",
             decoder_start_token_id=2, bos_token_id=3, is_decoding=True, **changes),
        case(f"{name}-untied", model, encoder_layers=1, **UNTIED, **changes),
        case(f"{name}-bare", f"{prefix}Model", exported=model, **changes),
        case(f"{name}-sequence", sequence, num_labels=5, **ends, **changes),
        case(f"{name}-sequence-untied", sequence, **ends, **UNTIED, **changes),
        case(f"{name}-span", f"{prefix}ForQuestionAnswering", **changes),
    )  # fmt: skip


CASES = (
    *cases("bart", "Bart"),
    case("bart-scaled", "BartForConditionalGeneration", scale_embedding=True, activation_function="gelu_new"),
)

LABELS = (({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),)

COUNTS = {
    "bart-base": (139_420_416, 139_420_416),
    "bart-large": (406_291_456, 406_291_456),
}
