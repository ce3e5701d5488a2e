from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 24,
    "intermediate_size": 28,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "local_attention": 10,
    "pad_token_id": 0,
    "max_position_embeddings": 64,
}
ROTARY = {
    "full_attention": {"rope_type": "default", "rope_theta": 500.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 70.0},
}


def case(name: str, architecture: str, **changes: object) -> Case:
    choices = {"choices": bool(changes.pop("choices", False))}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, **choices)


CASES = (
    case("modernbert", "ModernBertModel"),
    # The last layers are a suffix; each kind of layer has its own base, and everything that may have a bias has one.
    case("modernbert-biased", "ModernBertForMaskedLM", num_hidden_layers=6, global_attn_every_n_layers=2,
         rope_parameters=ROTARY, norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True,
         norm_eps=1e-6, hidden_activation="silu", classifier_activation="relu"),
    case("modernbert-mlm", "ModernBertForMaskedLM", num_hidden_layers=5),
    case("modernbert-mlm-untied", "ModernBertForMaskedLM", num_hidden_layers=1, tie_word_embeddings=False),
    case("modernbert-sequence", "ModernBertForSequenceClassification", num_labels=3),
    case("modernbert-sequence-mean", "ModernBertForSequenceClassification", classifier_pooling="mean",
         num_hidden_layers=2),
    case("modernbert-tokens", "ModernBertForTokenClassification", num_labels=5, num_hidden_layers=2),
    case("modernbert-span", "ModernBertForQuestionAnswering", num_hidden_layers=3),
    case("modernbert-choice", "ModernBertForMultipleChoice", choices=True, classifier_pooling="mean"),
)  # fmt: skip

LABELS = (
    ({"classifier_pooling": "mean", "classifier_dropout": 0.3}, heads.SequenceClassification(),
     {"pooling": "mean", "dropout": 0.3}),
    ({"classifier_bias": True, "classifier_activation": "relu"}, heads.TokenClassification(),
     {"dense_bias": True, "activation": "relu", "pooling": "first"}),
    ({"classifier_bias": True, "classifier_activation": "relu"}, heads.MaskedLM(),
     {"transform_bias": True, "activation": "relu"}),
)  # fmt: skip

COUNTS = {"modernbert-base": (149_014_272, 149_655_232), "modernbert-large": (394_781_696, 395_881_664)}
