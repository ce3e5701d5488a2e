from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}


def case(name: str, architecture: str, *, num_types: int = 2, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "unread") if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, num_types=num_types, **options)


CASES = (
    case("bert", "BertModel"),
    case("bert-types", "BertModel", num_types=5, type_vocab_size=5, num_attention_heads=2, layer_norm_eps=1e-6,
         hidden_act="gelu_new", num_hidden_layers=1),
    case("bert-mlm", "BertForMaskedLM"),
    # transformers 5 keeps a second bias in untied BERTs and never reads it.
    case("bert-mlm-untied", "BertForMaskedLM", tie_word_embeddings=False, hidden_act="relu",
         unread=frozenset({"cls.predictions.bias"})),
    case("bert-pretraining", "BertForPreTraining", num_hidden_layers=2),
    case("bert-sequence", "BertForSequenceClassification", num_labels=3),
    case("bert-tokens", "BertForTokenClassification", num_labels=5),
    case("bert-span", "BertForQuestionAnswering"),
    case("bert-choice", "BertForMultipleChoice", choices=True),
    case("bert-next", "BertForNextSentencePrediction", num_hidden_layers=2),
)  # fmt: skip

LABELS = (
    ({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"classifier_dropout": 0.3}, heads.MultipleChoice(), {"dropout": 0.3}),
    ({"classifier_dropout": None, "hidden_dropout_prob": 0.2}, heads.TokenClassification(), {"dropout": 0.2}),
    ({"classifier_dropout": 0.3}, heads.QuestionAnswering(), {"dropout": 0.0}),
)

CUT = 0.87962566
"""Standard deviation of a normal distribution cut at two of its own, which published code draws from
(tf.truncated_normal_initializer)."""
SPREADS = {".*": lambda config: 0.02 * CUT}

COUNTS = {
    "bert-base-uncased": (109_482_240, 110_106_428),
    "bert-base-cased": (108_310_272, 108_932_934),
    "bert-large-uncased": (335_141_888, 336_226_108),
    "bert-large-cased": (333_579_264, 334_661_958),
    "bert-base-multilingual-cased": (177_853_440, 178_566_653),
    "bert-base-multilingual-uncased": (167_356_416, 168_055_961),
    "bert-tiny": (4_385_920, 4_433_468),
    "bert-mini": (11_170_560, 11_267_900),
    "bert-small": (28_763_648, 29_058_876),
    "bert-medium": (41_373_184, 41_668_412),
    "tinybert-4": (14_350_248, 14_479_676),
    "tinybert-6": (66_955_008, 67_579_196),
}


def small(*, num_layers: int, d_model: int) -> tuple[int, int]:
    """The counts of one of the 24 small models, by the sizes of its parts."""
    d, f = d_model, 4 * d_model
    embeddings = (30522 + 512 + 2) * d + 2 * d
    layer = 4 * (d * d + d) + 2 * d + (d * f + f) + (f * d + d) + 2 * d
    bare = embeddings + num_layers * layer + d * d + d
    return bare, bare + (d * d + d + 2 * d + 30522) + (2 * d + 2)


COUNTS |= {
    f"bert-l{num_layers}-h{d_model}": small(num_layers=num_layers, d_model=d_model)
    for num_layers in range(2, 13, 2)
    for d_model in (128, 256, 512, 768)
}
