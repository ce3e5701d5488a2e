from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 20,
    "num_layers": 4,
    "num_heads": 4,
    "max_position_embeddings": 40,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 6,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def case(name: str, architecture: str, *, is_decoding: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, side="decoder", is_decoding=is_decoding)


SHALLOW = {"num_layers": 2, "attention_types": [[["global", "local"], 1]]}

CASES = (
    case("gpt_neo", "GPTNeoForCausalLM", is_decoding=True),
    case("gpt_neo-inner", "GPTNeoForCausalLM", intermediate_size=28, activation_function="relu", num_layers=3,
         attention_types=[[["local"], 1], [["global"], 2]], layer_norm_epsilon=1e-6, num_heads=5,
         tie_word_embeddings=False),
    case("gpt_neo-bare", "GPTNeoModel", **SHALLOW),
    case("gpt_neo-sequence", "GPTNeoForSequenceClassification", num_labels=3, pad_token_id=0, **SHALLOW),
    case("gpt_neo-tokens", "GPTNeoForTokenClassification", num_labels=5, **SHALLOW),
    case("gpt_neo-span", "GPTNeoForQuestionAnswering", **SHALLOW),
)  # fmt: skip

LABELS = (({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),)

COUNTS = {
    "gpt-neo-125m": (125_198_592, 125_198_592),
    "gpt-neo-1.3b": (1_315_575_808, 1_315_575_808),
    "gpt-neo-2.7b": (2_651_307_520, 2_651_307_520),
}
