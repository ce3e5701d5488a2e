from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "d_model": 20,
    "d_kv": 6,
    "d_ff": 28,
    "num_heads": 4,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}


def case(name: str, **changes: object) -> Case:
    decoding = {"is_decoding": bool(changes.pop("is_decoding", False))}
    config = {**SIZES, **changes}
    return Case(name=name, architecture="T5ForConditionalGeneration", config=config, side="both", **decoding)


CASES = (
    case("t5-1.0", is_decoding=True),
    case("t5-1.0-deep", num_layers=4, num_decoder_layers=1, num_heads=3, relative_attention_num_buckets=32,
         relative_attention_max_distance=128),
    case("t5-1.1", feed_forward_proj="gated-gelu", tie_word_embeddings=False, is_decoding=True),
    case("t5-swiglu", feed_forward_proj="gated-silu", layer_norm_epsilon=1e-5, tie_word_embeddings=False,
         num_decoder_layers=2, num_layers=1),
)  # fmt: skip

COUNTS = {
    "t5-small": (60_506_624, 60_506_624),
    "t5-base": (222_903_552, 222_903_552),
    "t5-large": (737_668_096, 737_668_096),
    "t5-3b": (2_851_598_336, 2_851_598_336),
    "t5-11b": (11_307_321_344, 11_307_321_344),
    "t5-v1_1-small": (76_961_152, 76_961_152),
    "t5-v1_1-base": (247_577_856, 247_577_856),
    "t5-v1_1-large": (783_150_080, 783_150_080),
    "t5-v1_1-xl": (2_849_757_184, 2_849_757_184),
    "t5-v1_1-xxl": (11_135_332_352, 11_135_332_352),
}
