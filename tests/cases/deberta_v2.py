from t2t import heads
from tests.cases import Case, deberta

SIZES = {
    **deberta.SIZES,
    "norm_rel_ebd": "layer_norm",
    "position_buckets": 8,
    "share_att_key": True,
}


def case(name: str, architecture: str, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "unread", "num_types") if key in changes}
    # Without a table of positions its rows are longer than the distances that are told apart.
    length = 29 if changes.get("position_biased_input") else SIZES["max_position_embeddings"] + 5
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, length=length, **options)


CASES = (
    case("deberta-v2", "DebertaV2Model"),
    case("deberta-v2-far", "DebertaV2Model", max_relative_positions=13, num_attention_heads=6, hidden_act="gelu_new"),
    case("deberta-v2-many-buckets", "DebertaV2Model", position_buckets=62, max_relative_positions=64),
    case("deberta-v2-own-keys", "DebertaV2Model", share_att_key=False, norm_rel_ebd="none", layer_norm_eps=1e-5,
         num_hidden_layers=2),
    case("deberta-v2-exact", "DebertaV2Model", position_buckets=-1, pos_att_type="p2c|c2p", type_vocab_size=3,
         num_types=3, position_biased_input=True),
    case("deberta-v2-c2p", "DebertaV2Model", pos_att_type="c2p", share_att_key=False),
    case("deberta-v2-p2c", "DebertaV2Model", pos_att_type="p2c", max_relative_positions=7, position_buckets=-1),
    case("deberta-v2-absolute", "DebertaV2Model", relative_attention=False, pos_att_type=None, norm_rel_ebd="none",
         position_biased_input=True),
    case("deberta-v2-convolved", "DebertaV2ForMaskedLM", conv_kernel_size=3, conv_act="gelu"),
    case("deberta-v2-wide-kernel", "DebertaV2Model", conv_kernel_size=5, num_hidden_layers=2, embedding_size=10),
    case("deberta-v2-mlm", "DebertaV2ForMaskedLM", embedding_size=10),
    case("deberta-v2-mlm-new", "DebertaV2ForMaskedLM", legacy=False),
    # transformers 5 keeps a second bias in untied models and never reads it.
    case("deberta-v2-mlm-untied", "DebertaV2ForMaskedLM", tie_word_embeddings=False,
         unread=frozenset({"cls.predictions.bias"})),
    case("deberta-v2-sequence", "DebertaV2ForSequenceClassification", num_labels=3),
    case("deberta-v2-tokens", "DebertaV2ForTokenClassification", num_labels=5),
    case("deberta-v2-span", "DebertaV2ForQuestionAnswering"),
    case("deberta-v2-choice", "DebertaV2ForMultipleChoice", choices=True, conv_kernel_size=3),
)  # fmt: skip

LABELS = (
    ({"pooler_hidden_act": "tanh"}, heads.MultipleChoice(), {"activation": "tanh", "drops_input": False}),
    ({"pooler_dropout": 0.1}, heads.SequenceClassification(), {"dropout": 0.1, "drops_input": True}),
)

COUNTS = {
    "deberta-v2-xlarge": (884_593_152, 887_085_156),
    "deberta-v2-xxlarge": (1_564_549_632, 1_567_041_636),
    "deberta-v3-xsmall": (70_682_112, 70_831_105),
    "deberta-v3-small": (141_304_320, 141_897_217),
    "deberta-v3-base": (183_831_552, 184_424_449),
    "deberta-v3-large": (434_012_160, 435_064_833),
}
