from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 150,
    "layer_norm_eps": 1e-5,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "unread", "pads_left") if key in changes}
    # Longer than the 128 positions that its biases tell apart.
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, pad_id=1, length=140, **options)


CASES = (
    case("mpnet", "MPNetModel"),
    case("mpnet-relu", "MPNetModel", hidden_act="relu", num_hidden_layers=1, num_attention_heads=2),
    case("mpnet-mlm", "MPNetForMaskedLM", hidden_act="gelu_new"),
    case("mpnet-mlm-left", "MPNetForMaskedLM", pads_left=True),
    # transformers 5 keeps a second bias in untied models and never reads it.
    case("mpnet-mlm-untied", "MPNetForMaskedLM", tie_word_embeddings=False, unread=frozenset({"lm_head.bias"})),
    case("mpnet-sequence", "MPNetForSequenceClassification", num_labels=3),
    case("mpnet-tokens", "MPNetForTokenClassification", num_labels=5),
    case("mpnet-span", "MPNetForQuestionAnswering"),
    case("mpnet-choice", "MPNetForMultipleChoice", choices=True),
)  # fmt: skip

COUNTS_POSITIONS = True

LABELS = (({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.1}),)

COUNTS = {
    "mpnet-base": (109_486_464, 109_518_527),
}
