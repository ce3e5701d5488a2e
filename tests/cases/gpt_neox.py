from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 28,
    "max_position_embeddings": 60,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def case(name: str, architecture: str, *, is_decoding: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, side="decoder", is_decoding=is_decoding)


ROTARY = {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.5}

CASES = (
    case("gpt_neox", "GPTNeoXForCausalLM", is_decoding=True),
    case("gpt_neox-sequential", "GPTNeoXForCausalLM", use_parallel_residual=False, rope_parameters=ROTARY,
         attention_bias=False, hidden_act="gelu_fast", layer_norm_eps=1e-6, num_hidden_layers=2),
    case("gpt_neox-tied", "GPTNeoXForCausalLM", tie_word_embeddings=True, num_hidden_layers=1,
         rope_parameters={**ROTARY, "partial_rotary_factor": 1.0}),
    case("gpt_neox-sequence", "GPTNeoXForSequenceClassification", num_labels=3, pad_token_id=0, num_hidden_layers=2),
    case("gpt_neox-tokens", "GPTNeoXForTokenClassification", num_labels=5, num_hidden_layers=2),
    case("gpt_neox-span", "GPTNeoXForQuestionAnswering", num_hidden_layers=2),
)  # fmt: skip

LABELS = (({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),)

# arXiv:2204.06745, section 2.1.3.
SPREADS = {
    ".*(out|down)/kernel": lambda config: 2 / config["num_hidden_layers"] / config["hidden_size"] ** 0.5,
    ".*": lambda config: (2 / 5 / config["hidden_size"]) ** 0.5,
}

COUNTS = {
    "gpt-neox-20b": (20_554_567_680, 20_554_567_680),
    "pythia-70m": (70_426_624, 70_426_624),
    "pythia-160m": (162_322_944, 162_322_944),
    "pythia-410m": (405_334_016, 405_334_016),
    "pythia-1b": (1_011_781_632, 1_011_781_632),
    "pythia-1.4b": (1_414_647_808, 1_414_647_808),
    "pythia-2.8b": (2_775_208_960, 2_775_208_960),
    "pythia-6.9b": (6_857_302_016, 6_857_302_016),
    "pythia-12b": (11_846_072_320, 11_846_072_320),
}
