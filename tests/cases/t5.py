from t2t import heads
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


def case(name: str, architecture: str = "T5ForConditionalGeneration", **changes: object) -> Case:
    fields = {key: changes.pop(key) for key in ("side", "end", "is_decoding", "is_daily") if key in changes}
    return Case(name=name, architecture=architecture, config={**SIZES, **changes}, **{"side": "both", **fields})


def labelled(name: str, prefix: str, **changes: object) -> tuple[Case, ...]:
    """The classes of a family of T5's shape that have no language model head."""
    return (
        case(f"{name}-bare", f"{prefix}Model", **changes),
        case(f"{name}-encoder", f"{prefix}EncoderModel", side="encoder", **changes),
        case(f"{name}-sequence", f"{prefix}ForSequenceClassification", end=1, num_labels=3, **changes),
        case(f"{name}-tokens", f"{prefix}ForTokenClassification", side="encoder", num_labels=5, **changes),
        case(f"{name}-span", f"{prefix}ForQuestionAnswering", **changes),
    )


CASES = (
    case("t5-1.0", is_decoding=True),
    case("t5-1.0-deep", num_layers=4, num_decoder_layers=1, num_heads=3, relative_attention_num_buckets=32,
         relative_attention_max_distance=128),
    case("t5-1.1", feed_forward_proj="gated-gelu", tie_word_embeddings=False, is_decoding=True,
         is_daily=True),
    case("t5-swiglu", feed_forward_proj="gated-silu", layer_norm_epsilon=1e-5, tie_word_embeddings=False,
         num_decoder_layers=2, num_layers=1),
    *labelled("t5-1.0", "T5"),
    *labelled("t5-1.1", "T5", feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=1),
)  # fmt: skip

LABELS = (({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),)

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
    "flan-t5-small": (76_961_152, 76_961_152),
    "flan-t5-base": (247_577_856, 247_577_856),
    "flan-t5-large": (783_150_080, 783_150_080),
    "flan-t5-xl": (2_849_757_184, 2_849_757_184),
    "flan-t5-xxl": (11_135_332_352, 11_135_332_352),
    "byt5-small": (299_637_760, 299_637_760),
    "byt5-base": (581_653_248, 581_653_248),
    "byt5-large": (1_228_183_552, 1_228_183_552),
    "byt5-xl": (3_737_801_728, 3_737_801_728),
    "byt5-xxl": (12_906_899_328, 12_906_899_328),
    "ul2-20b": (19_591_209_984, 19_591_209_984),
    "flan-ul2": (19_591_209_984, 19_591_209_984),
}
