"""transformers opens exports without a word: nothing in its log, no warning."""

import dataclasses
import json
import logging
import warnings

import pytest

from t2t import families
from t2t import vocabulary as vocabularies
from t2t.hf import config_map, export
from tests import cases
from tests.families.test_families import shrink
from tests.hf import oracle, tiny

pytestmark = [pytest.mark.hf, pytest.mark.slow]


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture
def heard():
    """What transformers says in the test, what it says only once in a process included."""
    import transformers

    logger, handler = transformers.utils.logging.get_logger("transformers"), Heard()
    level, old = logger.level, list(logger.handlers)
    transformers.utils.logging.warning_once.cache_clear()
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [*handler.messages, *(str(warning.message) for warning in caught)]
    logger.handlers = old
    logger.setLevel(level)


NOT_TIED = "so we will NOT tie them"
"""What transformers says of a T5 whose output is its own, whatever config.json holds: it takes each for tied at first
(`tie_word_embeddings` is set to true when it is read), then sees both tensors."""


def opened(directory, architecture, heard):
    """What transformers says while it opens a directory."""
    import transformers

    before = len(heard())
    getattr(transformers, architecture).from_pretrained(directory)
    return [message for message in heard()[before:] if not ("T5" in architecture and NOT_TIED in message)]


def test_what_transformers_says_is_heard(tmp_path, heard):
    export.export(tmp_path, config=tiny.PRETRAINING, params=tiny.params(tiny.PRETRAINING))
    assert "cls.predictions" in "".join(opened(tmp_path, "BertModel", heard))
    attributes = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(attributes | {"eos_token_id": 11}))
    assert "between 0 and 10" in "".join(opened(tmp_path, "BertForPreTraining", heard))


@pytest.mark.parametrize("case", oracle.CASES, ids=str)
def test_every_class_is_opened_in_silence(case, heard):
    assert opened(oracle.exported(case).ours, case.exported or case.architecture, heard) == []


BYTES = vocabularies.ByteVocabulary()
WITH_CLASS = [family for family in families.all_families().values() if cases.said("CASES")[family.model_type]]


def with_own_vocabulary(config, **position):
    """The model with a row for each byte, and its table of positions changed."""

    def own(embed):
        table = embed.position and dataclasses.replace(embed.position, **position)
        return dataclasses.replace(embed, vocab_size=BYTES.size, position=table)

    embeds = {"embed": config.embed, "decoder_embed": getattr(config, "decoder_embed", None)}
    return dataclasses.replace(config, **{name: own(embed) for name, embed in embeds.items() if embed is not None})


@pytest.mark.parametrize("family", WITH_CLASS, ids=lambda family: family.model_type)
def test_models_with_a_small_vocabulary_of_their_own_are_opened_in_silence(family, tmp_path, heard):
    config = with_own_vocabulary(shrink(next(iter(family.presets.values()))()))
    attributes = families.expressing(config)[1]
    if attributes.get("pad_token_id", BYTES.pad_id) != BYTES.pad_id:
        config = with_own_vocabulary(config, offset=BYTES.pad_id + 1)
        try:
            attributes = families.expressing(config)[1]
        except config_map.InexpressibleError:
            pytest.skip("transformers has its padding fixed")
    export.export(tmp_path, config=config, params=tiny.params(config), vocabulary=BYTES)
    assert opened(tmp_path, attributes["architectures"][0], heard) == []
    written = json.loads((tmp_path / "config.json").read_text())
    expected = {"pad_token_id": BYTES.pad_id, "eos_token_id": BYTES.eos_id, "sep_token_id": BYTES.eos_id}
    assert {name: written[name] for name in expected if name in written} == {
        name: token for name, token in expected.items() if name in written
    }
    assert {name for name in family.published_ids or {} if name.endswith("_token_id")} <= set(written)
