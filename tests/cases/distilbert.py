from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "dim": 24,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 28,
    "max_position_embeddings": 40,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices",) if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, **options)


CASES = (
    case("distilbert", "DistilBertModel"),
    case("distilbert-relu", "DistilBertModel", activation="relu", n_layers=1, n_heads=2, sinusoidal_pos_embds=True),
    case("distilbert-mlm", "DistilBertForMaskedLM"),
    case("distilbert-mlm-untied", "DistilBertForMaskedLM", tie_word_embeddings=False, activation="gelu_new"),
    case("distilbert-sequence", "DistilBertForSequenceClassification", num_labels=3, seq_classif_dropout=0.4),
    case("distilbert-tokens", "DistilBertForTokenClassification", num_labels=5, dropout=0.3),
    case("distilbert-span", "DistilBertForQuestionAnswering", qa_dropout=0.2),
    case("distilbert-choice", "DistilBertForMultipleChoice", choices=True),
)  # fmt: skip

LABELS = (
    ({"seq_classif_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"qa_dropout": 0.3}, heads.QuestionAnswering(), {"dropout": 0.3}),
    ({"seq_classif_dropout": 0.3, "dropout": 0.2}, heads.TokenClassification(), {"dropout": 0.2}),
)

COUNTS = {
    "distilbert-base-uncased": (66_362_880, 66_985_530),
    "distilbert-base-cased": (65_190_912, 65_812_036),
    "distilbert-base-multilingual-cased": (134_734_080, 135_445_755),
}
