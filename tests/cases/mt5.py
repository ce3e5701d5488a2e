from tests.cases import t5

GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

CASES = (
    t5.case("mt5", "MT5ForConditionalGeneration", is_decoding=True, **GATED),
    t5.case("mt5-deep", "MT5ForConditionalGeneration", num_layers=4, num_decoder_layers=1, num_heads=3, **GATED),
    *t5.labelled("mt5", "MT5", **GATED),
)

IS_DERIVED = True

SPREADS = None

COUNTS = {
    "mt5-small": (300_176_768, 300_176_768),
    "mt5-base": (582_401_280, 582_401_280),
    "mt5-large": (1_229_581_312, 1_229_581_312),
    "mt5-xl": (3_742_619_648, 3_742_619_648),
    "mt5-xxl": (12_921_057_280, 12_921_057_280),
}
