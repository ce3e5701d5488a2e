"""Exact numbers of parameters of every preset, by `jax.eval_shape`.

The numbers are unique parameters of transformers' classes on the meta device, and for the sizes without a class the
published formula; bare models and models with the heads of pretraining.
"""

import pytest

from t2t import families, heads
from t2t.models import base

COUNTS = {
    "bert-base-uncased": (109_482_240, 110_106_428),
    "bert-base-cased": (108_310_272, 108_932_934),
    "bert-large-uncased": (335_141_888, 336_226_108),
    "bert-large-cased": (333_579_264, 334_661_958),
    "bert-base-multilingual-cased": (177_853_440, 178_566_653),
    "bert-base-multilingual-uncased": (167_356_416, 168_055_961),
    "bert-tiny": (4_385_920, 4_433_468),
    "bert-mini": (11_170_560, 11_267_900),
    "bert-small": (28_763_648, 29_058_876),
    "bert-medium": (41_373_184, 41_668_412),
    "openai-gpt": (116_534_784, 116_534_784),
    "gpt2": (124_439_808, 124_439_808),
    "gpt2-medium": (354_823_168, 354_823_168),
    "gpt2-large": (774_030_080, 774_030_080),
    "gpt2-xl": (1_557_611_200, 1_557_611_200),
    "distilgpt2": (81_912_576, 81_912_576),
    "gpt3-175b": (174_604_259_328, 174_604_259_328),
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


@pytest.mark.parametrize("name", COUNTS)
def test_count_of_a_preset(name):
    config, pretraining = families.preset(name), families.preset(name, head=heads.PRETRAINING)
    assert (base.count_parameters(config), base.count_parameters(pretraining)) == COUNTS[name]


def test_masked_words_alone_need_no_pooler():
    assert base.count_parameters(families.preset("bert-base-uncased", head=heads.MaskedLM())) == 109_514_298


@pytest.mark.parametrize("num_layers", [2, 4, 6, 8, 10, 12])
@pytest.mark.parametrize("d_model", [128, 256, 512, 768])
def test_count_of_the_small_berts(num_layers, d_model):
    d, f = d_model, 4 * d_model
    embeddings = (30522 + 512 + 2) * d + 2 * d
    layer = 4 * (d * d + d) + 2 * d + (d * f + f) + (f * d + d) + 2 * d
    expected = embeddings + num_layers * layer + d * d + d
    assert base.count_parameters(families.preset(f"bert-l{num_layers}-h{d_model}")) == expected


def test_every_preset_has_a_number():
    small = {name for name in families.presets() if name.startswith("bert-l") and "-h" in name}
    assert len(small) == 24
    assert {*COUNTS} | small == set(families.presets())


def test_t5_1_1_is_pretrained_without_dropout_and_1_0_with():
    assert families.preset("t5-v1_1-base").encoder.pattern[0].dropout == 0.0
    assert families.preset("t5-base").encoder.pattern[0].dropout == 0.1
    tuned = families.with_dropout(families.preset("t5-v1_1-base"), 0.1)
    assert tuned.decoder.pattern[0].feed_forward.dropout == 0.1
