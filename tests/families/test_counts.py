"""Exact numbers of parameters of every preset, by `jax.eval_shape`.

The numbers are unique parameters of transformers' classes on the meta device, and for the sizes without a class the
published formula; bare models and models with the heads of pretraining.
"""

import pytest

from t2t import families, heads
from t2t.models import base
from tests.cases import all_counts

COUNTS = all_counts()


@pytest.mark.parametrize("name", COUNTS)
def test_count_of_a_preset(name):
    config, pretraining = families.preset(name), families.preset(name, head=heads.PRETRAINING)
    assert (base.count_parameters(config), base.count_parameters(pretraining)) == COUNTS[name]


def test_masked_words_alone_need_no_pooler():
    assert base.count_parameters(families.preset("bert-base-uncased", head=heads.MaskedLM())) == 109_514_298


def test_every_preset_has_a_number():
    assert set(COUNTS) == set(families.presets())


def test_t5_1_1_is_pretrained_without_dropout_and_1_0_with():
    assert families.preset("t5-v1_1-base").encoder.pattern[0].dropout == 0.0
    assert families.preset("t5-base").encoder.pattern[0].dropout == 0.1
    tuned = families.with_dropout(families.preset("t5-v1_1-base"), 0.1)
    assert tuned.decoder.pattern[0].feed_forward.dropout == 0.1
