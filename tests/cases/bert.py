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
