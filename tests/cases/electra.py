from t2t import heads
from tests.cases import Case, bert

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
    options = {key: changes.pop(key) for key in ("choices",) if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, num_types=2, **options)


CASES = (
    case("electra", "ElectraModel"),
    case("electra-wide", "ElectraModel", embedding_size=24, num_attention_heads=2, layer_norm_eps=1e-6,
         hidden_act="gelu_new", num_hidden_layers=1),
    case("electra-narrow", "ElectraForMaskedLM", embedding_size=36),
    case("electra-discriminator", "ElectraForPreTraining"),
    case("electra-discriminator-wide", "ElectraForPreTraining", embedding_size=24, hidden_act="relu"),
    case("electra-generator", "ElectraForMaskedLM", hidden_act="gelu_new"),
    case("electra-generator-wide", "ElectraForMaskedLM", embedding_size=24),
    case("electra-generator-untied", "ElectraForMaskedLM", tie_word_embeddings=False),
    case("electra-sequence", "ElectraForSequenceClassification", num_labels=3, hidden_act="relu"),
    case("electra-regression", "ElectraForSequenceClassification", num_labels=1),
    case("electra-tokens", "ElectraForTokenClassification", num_labels=5),
    case("electra-tokens-wide", "ElectraForTokenClassification", num_labels=5, embedding_size=24),
    case("electra-span", "ElectraForQuestionAnswering"),
    case("electra-choice", "ElectraForMultipleChoice", choices=True, hidden_act="relu", summary_last_dropout=0.3),
)  # fmt: skip

LABELS = (
    ({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"classifier_dropout": 0.3, "summary_last_dropout": 0.4}, heads.MultipleChoice(), {"dropout": 0.4}),
)

SPREADS = bert.SPREADS

COUNTS = {
    "electra-small": (13_483_008, 13_549_057),
    "electra-base": (108_891_648, 109_483_009),
    "electra-large": (334_092_288, 335_142_913),
    "electra-small-generator": (13_483_008, 13_546_682),
    "electra-small-generator-quarter": (4_580_928, 4_620_026),
    "electra-base-generator": (33_511_168, 33_740_602),
    "electra-large-generator": (50_999_552, 51_295_290),
}
