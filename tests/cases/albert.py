from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "embedding_size": 20,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "unread") if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, num_types=2, **options)


CASES = (
    case("albert", "AlbertModel"),
    case("albert-groups", "AlbertModel", num_hidden_layers=6, num_hidden_groups=3, layer_norm_eps=1e-6,
         num_attention_heads=2),
    case("albert-wide", "AlbertModel", embedding_size=24, num_hidden_groups=3, hidden_act="gelu"),
    case("albert-mlm", "AlbertForMaskedLM", hidden_act="relu"),
    # transformers 5 keeps a second bias in untied models and never reads it.
    case("albert-mlm-untied", "AlbertForMaskedLM", tie_word_embeddings=False, unread=frozenset({"predictions.bias"})),
    case("albert-pretraining", "AlbertForPreTraining", num_hidden_layers=2, classifier_dropout_prob=0.3),
    case("albert-sequence", "AlbertForSequenceClassification", num_labels=3, hidden_dropout_prob=0.2),
    case("albert-tokens", "AlbertForTokenClassification", num_labels=5),
    case("albert-span", "AlbertForQuestionAnswering"),
    case("albert-choice", "AlbertForMultipleChoice", choices=True),
)  # fmt: skip

LABELS = (
    ({"classifier_dropout_prob": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"classifier_dropout_prob": None, "hidden_dropout_prob": 0.2}, heads.TokenClassification(), {"dropout": 0.2}),
    ({"classifier_dropout_prob": 0.3}, heads.PRETRAINING, {"dropout": 0.3}),
    ({"classifier_dropout_prob": 0.3}, heads.QuestionAnswering(), {"dropout": 0.0}),
)

COUNTS = {
    "albert-base-v2": (11_683_584, 11_813_810),
    "albert-large-v2": (17_683_968, 17_847_474),
    "albert-xlarge-v2": (58_724_864, 59_021_490),
    "albert-xxlarge-v2": (222_595_584, 223_158_450),
    "albert-base-v1": (11_683_584, 11_813_810),
    "albert-large-v1": (17_683_968, 17_847_474),
    "albert-xlarge-v1": (58_724_864, 59_021_490),
    "albert-xxlarge-v1": (222_595_584, 223_158_450),
}
