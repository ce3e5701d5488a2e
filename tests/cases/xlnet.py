from t2t import heads
from tests.cases import Case

SIZES = {"vocab_size": 53, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 28, "mem_len": None}


def case(name: str, architecture: str, *, num_types: int = 3, **changes: object) -> Case:
    options = {key: changes.pop(key) for key in ("choices", "pads_left") if key in changes}
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, num_types=num_types, pad_id=5, **options)


CASES = (
    case("xlnet", "XLNetModel", mem_len=11, reuse_len=7, clamp_len=23),
    case("xlnet-left", "XLNetModel", pads_left=True),
    case("xlnet-no-types", "XLNetModel", num_types=0, n_layer=1, n_head=2, ff_activation="relu", clamp_len=9,
         layer_norm_eps=1e-6),
    case("xlnet-lm", "XLNetLMHeadModel"),
    case("xlnet-lm-untied", "XLNetLMHeadModel", tie_word_embeddings=False, n_layer=2, n_head=3, ff_activation="silu"),
    # Its class reads the last position, padding or not.
    case("xlnet-sequence", "XLNetForSequenceClassification", num_labels=3, pads_left=True),
    case("xlnet-tokens", "XLNetForTokenClassification", num_labels=7, pads_left=True),
    case("xlnet-span", "XLNetForQuestionAnsweringSimple"),
    case("xlnet-choice", "XLNetForMultipleChoice", choices=True, pads_left=True),
)  # fmt: skip

LABELS = (({"summary_last_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),)

COUNTS = {
    "xlnet-base-cased": (116_718_336, 116_750_336),
    "xlnet-large-cased": (360_268_800, 360_300_800),
}
