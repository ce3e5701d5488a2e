from t2t import heads
from tests.cases import t5

GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

CASES = (
    t5.case("umt5", "UMT5ForConditionalGeneration", is_decoding=True, **GATED),
    t5.case("umt5-tied", "UMT5ForConditionalGeneration", num_layers=4, num_decoder_layers=1, num_heads=3),
    *t5.labelled("umt5", "UMT5", **GATED),
)

IS_DERIVED = True

LABELS = (({"classifier_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),)

# T5X draws biases of positions uniformly by the mean of both sizes.
SPREADS = {".*position/embedding": lambda config: (2 / (8 + config["num_heads"])) ** 0.5}

COUNTS = {
    "umt5-small": (306_601_984, 306_601_984),
    "umt5-base": (592_043_520, 592_043_520),
    "umt5-xl": (3_768_356_864, 3_768_356_864),
    "umt5-xxl": (12_972_531_712, 12_972_531_712),
}
