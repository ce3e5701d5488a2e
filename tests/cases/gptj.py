from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "n_embd": 40,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 48,
    "rotary_dim": 6,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def case(name: str, architecture: str, *, is_decoding: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, side="decoder", is_decoding=is_decoding)


CASES = (
    case("gptj", "GPTJForCausalLM", is_decoding=True),
    case("gptj-tied", "GPTJForCausalLM", n_inner=28, activation_function="relu", layer_norm_epsilon=1e-6, n_layer=1,
         rotary_dim=10, tie_word_embeddings=True),
    case("gptj-sequence", "GPTJForSequenceClassification", num_labels=3, pad_token_id=0, n_layer=2),
    case("gptj-span", "GPTJForQuestionAnswering", n_layer=2),
)  # fmt: skip

COUNTS = {"gpt-j-6b": (6_050_882_784, 6_050_882_784)}
