from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 40,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
}


def cases(name: str, prefix: str) -> tuple[Case, ...]:
    """Every class of a family whose form is RoBERTa's."""

    def case(part: str, ending: str, **changes: object) -> Case:
        options = {key: changes.pop(key) for key in ("choices", "unread", "num_types", "pads_left") if key in changes}
        return Case(
            name=name + part, architecture=f"{prefix}{ending}", config={**SIZES, **changes}, pad_id=1, **options
        )

    return (
        case("", "Model"),
        case("-types", "Model", num_types=3, type_vocab_size=3, num_attention_heads=2, layer_norm_eps=1e-6,
             hidden_act="relu", num_hidden_layers=1),
        case("-mlm", "ForMaskedLM"),
        case("-mlm-left", "ForMaskedLM", pads_left=True, hidden_act="gelu_new"),
        # transformers 5 keeps a second bias in untied models and never reads it.
        case("-mlm-untied", "ForMaskedLM", tie_word_embeddings=False, unread=frozenset({"lm_head.bias"})),
        case("-sequence", "ForSequenceClassification", num_labels=3),
        case("-tokens", "ForTokenClassification", num_labels=5),
        case("-span", "ForQuestionAnswering"),
        case("-choice", "ForMultipleChoice", choices=True),
    )  # fmt: skip


CASES = cases("roberta", "Roberta")

COUNTS_POSITIONS = True

LABELS = (
    ({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"classifier_dropout": 0.3}, heads.MultipleChoice(), {"dropout": 0.1}),
)

COUNTS = {
    "roberta-base": (124_645_632, 124_697_433),
    "roberta-large": (355_359_744, 355_412_057),
    "distilroberta-base": (82_118_400, 82_170_201),
}
