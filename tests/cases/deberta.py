from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 40,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "unread", "num_types") if key in changes}
    # Without a table of positions its rows are longer than the distances that are told apart.
    length = 29 if changes.get("position_biased_input") else SIZES["max_position_embeddings"] + 5
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, length=length, **options)


CASES = (
    case("deberta", "DebertaModel"),
    case("deberta-near", "DebertaModel", max_relative_positions=11, num_attention_heads=6, hidden_act="gelu_new"),
    case("deberta-c2p", "DebertaModel", pos_att_type="c2p", layer_norm_eps=1e-5, num_hidden_layers=1),
    case("deberta-p2c", "DebertaModel", pos_att_type=["p2c"], type_vocab_size=3, num_types=3,
         position_biased_input=True, max_relative_positions=17),
    case("deberta-absolute", "DebertaModel", relative_attention=False, pos_att_type=None, position_biased_input=True),
    case("deberta-narrow", "DebertaForMaskedLM", embedding_size=10, num_hidden_layers=2),
    case("deberta-mlm", "DebertaForMaskedLM"),
    case("deberta-mlm-new", "DebertaForMaskedLM", legacy=False, hidden_act="relu"),
    # transformers 5 keeps a second bias in untied models and never reads it.
    case("deberta-mlm-untied", "DebertaForMaskedLM", tie_word_embeddings=False,
         unread=frozenset({"cls.predictions.bias"})),
    case("deberta-sequence", "DebertaForSequenceClassification", num_labels=3, pooler_hidden_act="tanh"),
    case("deberta-tokens", "DebertaForTokenClassification", num_labels=5),
    case("deberta-span", "DebertaForQuestionAnswering"),
)  # fmt: skip

LABELS = (
    ({"cls_dropout": 0.3, "pooler_hidden_act": "relu"}, heads.SequenceClassification(),
     {"dropout": 0.3, "activation": "relu"}),
)  # fmt: skip

COUNTS = {
    "deberta-base": (138_601_728, 139_244_121),
    "deberta-large": (405_163_008, 406_264_921),
}
