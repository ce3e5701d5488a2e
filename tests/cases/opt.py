from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "ffn_dim": 28,
    "max_position_embeddings": 40,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def case(name: str, architecture: str, *, is_decoding: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, side="decoder", is_decoding=is_decoding)


CASES = (
    case("opt", "OPTForCausalLM", is_decoding=True),
    case("opt-post", "OPTForCausalLM", do_layer_norm_before=False, activation_function="gelu", num_hidden_layers=2,
         enable_bias=False, tie_word_embeddings=False),
    case("opt-without-final-norm", "OPTForCausalLM", _remove_final_layer_norm=True, num_hidden_layers=1),
    case("opt-bare", "OPTModel", num_hidden_layers=2),
    case("opt-sequence", "OPTForSequenceClassification", num_labels=3, num_hidden_layers=2),
    case("opt-span", "OPTForQuestionAnswering", num_hidden_layers=2),
)  # fmt: skip

COUNTS_POSITIONS = True

# arXiv:2205.01068, section 2.2.
SPREADS = {
    ".*(out|down)/kernel": lambda config: 0.006 * (2 * config["num_hidden_layers"]) ** -0.5,
    ".*": lambda config: 0.006,
}

COUNTS = {
    "opt-125m": (125_239_296, 125_239_296),
    "opt-1.3b": (1_315_758_080, 1_315_758_080),
    "opt-2.7b": (2_651_596_800, 2_651_596_800),
    "opt-6.7b": (6_658_473_984, 6_658_473_984),
    "opt-13b": (12_853_473_280, 12_853_473_280),
    "opt-30b": (29_974_540_288, 29_974_540_288),
    "opt-66b": (65_719_701_504, 65_719_701_504),
    "opt-175b": (174_604_468_224, 174_604_468_224),
}
