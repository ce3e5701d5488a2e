"""What families of BERT's kind share and do not share, and the layouts of their published files."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from t2t import families, heads
from t2t.families import albert, bert, distilbert, electra, mpnet, roberta
from t2t.hf import config_map, export, files, load
from t2t.models import base
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import MaskedLanguageModelHead
from tests.hf import tiny

SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 11, "max_positions": 9}


def with_tensors(directory, tensors):
    """Adds tensors to an exported directory."""
    path = directory / files.SINGLE
    held = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file({**held, **tensors}, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "head", "count"),
    [
        ("bert-base-uncased", heads.SequenceClassification(), 109_483_778),
        ("roberta-base", heads.SequenceClassification(), 124_647_170),
        ("albert-base-v2", heads.SequenceClassification(), 11_685_122),
        ("distilbert-base-uncased", heads.SequenceClassification(), 66_955_010),
        ("albert-base-v2", heads.MaskedLM(), 11_221_680),
    ],
)
def test_counts_with_other_heads(name, head, count):
    assert base.count_parameters(families.preset(name, head=head)) == count


def test_the_released_small_generator_is_as_large_as_its_discriminator():
    """The paper's has a quarter of the width."""
    released, paper = families.preset("electra-small-generator"), families.preset("electra-small-generator-quarter")
    discriminator = families.preset("electra-small")
    assert (released.embed, released.stack) == (discriminator.embed, discriminator.stack)
    assert (paper.d_model, paper.embed.dim, paper.embed.width) == (64, 128, 64)


def test_the_head_of_pretraining_tells_generator_and_discriminator():
    discriminator = families.preset("electra-small", head=heads.PRETRAINING)
    generator = families.preset("electra-small-generator", head=heads.PRETRAINING)
    assert isinstance(discriminator.head, ClassificationHead) and discriminator.head.task == "replaced"
    assert isinstance(generator.head, MaskedLanguageModelHead) and generator.head.dim == 128
    assert electra.with_head(generator, heads.PRETRAINING) == generator
    assert electra.with_head(discriminator, heads.PRETRAINING) == discriminator


def test_a_form_of_several_families_is_exported_as_the_one_it_names():
    """XLM-RoBERTa has RoBERTa's form, and ELECTRA, where its tables are as wide as the model, BERT's."""
    config = roberta.roberta(**SIZES)
    assert families.expressing(config)[0].model_type == "roberta"
    assert families.expressing(dataclasses.replace(config, family="xlm-roberta"))[0].model_type == "xlm-roberta"
    tagger = electra.with_head(electra.electra(**SIZES), heads.TokenClassification(num_labels=5))
    assert families.expressing(tagger)[0].model_type == "electra"
    assert families.expressing(dataclasses.replace(tagger, family=None))[0].model_type == "bert"


@pytest.mark.parametrize(
    ("config", "head", "name"),
    [
        (distilbert.distilbert(**SIZES), heads.TokenClassification(), "distilbert"),
        (mpnet.mpnet(**SIZES), heads.QuestionAnswering(), "mpnet"),
        (albert.albert(**SIZES, embed_dim=12), heads.MaskedLM(), "albert"),
        (electra.electra(**SIZES, embed_dim=20), heads.TokenClassification(), "electra"),
    ],
)
def test_other_forms_are_of_one_family(config, head, name):
    config = families.by_model_type(name).with_head(dataclasses.replace(config, family=None), head)
    assert families.expressing(config)[0].model_type == name


def test_a_bert_without_sentence_types_and_with_a_pooler_is_refused():
    with pytest.raises(config_map.InexpressibleError, match="bert: it has no table of sentence types"):
        families.expressing(bert.bert(**SIZES, num_types=0))


@pytest.mark.parametrize(
    ("config", "pooler"),
    [(roberta.roberta(**SIZES), "roberta.pooler.dense"), (albert.albert(**SIZES, embed_dim=5), "albert.pooler")],
    ids=["roberta", "albert"],
)
def test_a_pooler_beside_a_head_of_masked_words_is_kept(tmp_path, config, pooler):
    """The published files of RoBERTa and ALBERT have one."""
    family = families.expressing(config)[0]
    config = family.with_head(config, heads.MaskedLM())
    export.export(tmp_path, config=config, params=tiny.params(config))
    weight = np.arange(144, dtype=np.float32).reshape(12, 12)
    with_tensors(tmp_path, {f"{pooler}.weight": weight, f"{pooler}.bias": np.ones(12, np.float32)})
    opened = load.open_directory(tmp_path)
    assert opened.config == dataclasses.replace(config, pooler=True)
    np.testing.assert_array_equal(opened.params()["pooler"]["kernel"], weight.T)
    export.export(tmp_path / "again", config=opened.config, params=opened.params())
    assert json.loads((tmp_path / "again" / "config.json").read_text())["architectures"][0].endswith("ForMaskedLM")
    tiny.assert_trees_equal(load.open_directory(tmp_path / "again").params(), opened.params())
    assert load.open_directory(tmp_path, head=heads.MaskedLM()).config == config


def test_tinyberts_projections_to_its_teacher_are_left_out(tmp_path):
    export.export(tmp_path, config=tiny.PRETRAINING, params=tiny.params(tiny.PRETRAINING))
    with_tensors(tmp_path, {"fit_denses.0.weight": np.ones((5, 12), np.float32)})
    assert load.open_directory(tmp_path).config == tiny.PRETRAINING


@pytest.mark.parametrize("name", ["roberta-base", "distilbert-base-uncased", "electra-small", "mpnet-base"])
def test_names_of_labels(tmp_path, name):
    head = heads.SequenceClassification(num_labels=3, labels=("yes", "maybe", "no"))
    module = {"roberta-base": roberta.roberta, "distilbert-base-uncased": distilbert.distilbert,
              "electra-small": electra.electra, "mpnet-base": mpnet.mpnet}  # fmt: skip
    config = module[name](**SIZES)
    config = families.expressing(families.preset(name))[0].with_head(config, head)
    export.export(tmp_path, config=config, params=tiny.params(config))
    assert json.loads((tmp_path / "config.json").read_text())["label2id"] == {"yes": 0, "maybe": 1, "no": 2}
    assert load.open_directory(tmp_path).config == config


def test_dropout_before_a_classifier_is_kept(tmp_path):
    """Where config.json has a place of its own for it."""
    for number, (family, config, head) in enumerate([
        ("distilbert", distilbert.distilbert(**SIZES), heads.SequenceClassification()),
        ("distilbert", distilbert.distilbert(**SIZES), heads.QuestionAnswering()),
        ("albert", albert.albert(**SIZES, embed_dim=5), heads.TokenClassification()),
        ("albert", albert.albert(**SIZES, embed_dim=5), heads.PRETRAINING),
        ("electra", electra.electra(**SIZES), heads.MultipleChoice()),
    ]):  # fmt: skip
        config = families.by_model_type(family).with_head(config, head)
        config = dataclasses.replace(config, head=dataclasses.replace(config.head, dropout=0.35))
        export.export(tmp_path / str(number), config=config, params=tiny.params(config))
        assert load.open_directory(tmp_path / str(number)).config == config
