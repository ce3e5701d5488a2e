from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 20,
    "n_layer": 3,
    "n_head": 4,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def case(name: str, architecture: str, *, is_decoding: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, side="decoder", is_decoding=is_decoding)


CASES = (
    case("bloom", "BloomForCausalLM", is_decoding=True),
    case("bloom-untied", "BloomForCausalLM", n_head=5, n_layer=1, layer_norm_epsilon=1e-6, tie_word_embeddings=False),
    case("bloom-bare", "BloomModel", n_layer=2, hidden_size=18, n_head=6),
    case("bloom-sequence", "BloomForSequenceClassification", num_labels=3, pad_token_id=0, n_layer=2),
    case("bloom-tokens", "BloomForTokenClassification", num_labels=5, n_layer=2),
    case("bloom-span", "BloomForQuestionAnswering", n_layer=2),
)  # fmt: skip

LABELS = (
    ({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),
    ({"hidden_dropout": 0.2}, heads.TokenClassification(), {"dropout": 0.2}),
)

# Its embedding is normalised, so that norm(x) . x = std * d_model, which is 20 nats and more.
SURE_OF_ITS_INPUT = True

# arXiv:2211.05100: as Megatron-LM, which scales the projections into the residual stream.
SPREADS = {".*(out|down)/kernel": lambda config: 0.02 * (2 * config["n_layer"]) ** -0.5}

COUNTS = {
    "bloom-560m": (559_214_592, 559_214_592),
    "bloom-1b1": (1_065_314_304, 1_065_314_304),
    "bloom-1b7": (1_722_408_960, 1_722_408_960),
    "bloom-3b": (3_002_557_440, 3_002_557_440),
    "bloom-7b1": (7_069_016_064, 7_069_016_064),
    "bloom": (176_247_271_424, 176_247_271_424),
}
