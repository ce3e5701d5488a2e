"""mBART: BART in 25 languages, with norms before each sublayer and at the end, and scaled embeddings.

    mbart-large-cc25

A text is followed by its end and the code of its language; the decoder starts with the code of the target's. In a task
both texts end with their code ("Hello. en_XX", "Salut. ro_RO"); to generate, say with which one the decoder starts
(`t2t generate --start ro_RO`). The head of a text's labels reads the decoder's last state: give the decoder the code
and the text, without its end.

Reference: Liu et al., Multilingual Denoising Pre-training for Neural Machine Translation, arXiv:2001.08210; the sizes
and rates of dropout are those of the published config.json.

Differs: as BART (`t2t/families/bart.py`). Of mBART-50, which begins both texts with the code, the model is read, but
the codes are not put in their places.
"""

import functools

from t2t.families import bart
from t2t.hf import config_map

with_head = functools.partial(bart.with_head, name="mBART")
"""The model with the head asked for, as BART's."""

PRESETS = {
    "mbart-large-cc25": bart.preset(
        num_layers=12, num_heads=16, d_model=1024, vocab_size=250027, is_pre_norm=True, scale=1024**0.5
    ),
}

ATTRIBUTES = config_map.Attributes(
    read=bart.ATTRIBUTES.read,
    fixed={**bart.ATTRIBUTES.fixed, "normalize_before": (True,), "add_final_layer_norm": (True,)},
    ignored=bart.ATTRIBUTES.ignored,
)

FAMILY = config_map.Family(
    model_type="mbart",
    refused={"MBartForCausalLM": bart.DECODER_ALONE.format("MBart")},
    presets=PRESETS,
    table=bart.TABLE,
    attributes=ATTRIBUTES,
    from_hf=functools.partial(bart.read, num_labels=2, name="mBART", is_pre_norm=True),
    to_hf=bart.attributes,
    architecture=functools.partial(bart.architecture, prefix="MBart"),
    with_head=with_head,
    head_from_hf=bart.HEAD_FIELDS.read,
    kept=bart.HEAD_FIELDS.unused,
    zeros=bart.zeros,
    published_ids={"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": 2},
    closes=("eos", "language"),
    note="The tokenizer writes the code of English (en_XX) behind a text. For another language, replace the last id; a "
    "decoder starts with the code of the language to write: `forced_bos_token_id` or `decoder_start_token_id`.",
)
