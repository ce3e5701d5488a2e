"""XLM's tasks: languages marked, translations read from files, and both mixed. Nothing needs a network."""

import importlib

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import corpora, examples, mixtures, public_sources, registry  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

LENGTHS = {"inputs": 64, "targets": 64}
VOCABULARY = ByteVocabulary(mask=True)
LANGUAGES = "ar bg de el en es fr hi ru sw th tr ur vi zh".split()


@pytest.fixture(scope="module")
def xlm():
    return importlib.import_module("tasks.xlm")


def read(task):
    return examples.load_examples(task, "train", vocabulary=VOCABULARY, lengths=LENGTHS, seed=0)


def test_the_articles_are_those_of_tfds(xlm):
    assert LANGUAGES == list(xlm.LANGUAGES)
    builder = importlib.import_module("tensorflow_datasets").builder_cls("wikipedia")
    published = {config.name for config in builder.BUILDER_CONFIGS}
    for language in LANGUAGES:
        source = seqio.TaskRegistry.get(f"xlm_{language}_mlm").source
        assert source.tfds_dataset.name == f"wikipedia/20230601.{language}:1.0.0"
        assert f"20230601.{language}" in published


def test_a_text_carries_its_language(xlm):
    task = seqio.TaskRegistry.get("xlm_fr_mlm")
    source = registry.TextSource(lambda split: [{"text": "Le chat est bleu. " * 20}], splits=("train",))
    example = read(task.replace(source=source)).example(0, epoch=0)
    assert example["language_ids"] == LANGUAGES.index("fr")
    assert example["weights"].sum() > 0


def test_translations_are_read_from_their_files(xlm, tmp_path, monkeypatch):
    folder = tmp_path / "xlm"
    folder.mkdir()
    monkeypatch.setenv(public_sources.CORPORA, str(tmp_path))
    for name in ("en-tr.tsv", "en-tr.valid.tsv"):
        (folder / name).write_text("source\ttarget\nthe cat is blue\tkedi mavi\n", encoding="utf-8")
    task = seqio.TaskRegistry.get("xlm_en_tr_tlm").replace(source=xlm.translations("tr"))
    example = read(task).example(0, epoch=0)
    end = VOCABULARY.eos_id
    pair = [end, *VOCABULARY.encode("the cat is blue"), end, end, *VOCABULARY.encode("kedi mavi"), end]
    assert example["targets"].tolist() == pair
    english, turkish = LANGUAGES.index("en"), LANGUAGES.index("tr")
    assert example["language_ids"].tolist() == [english] * 17 + [turkish] * 11
    assert example["positions"].tolist() == [*range(17), *range(11)]


def test_who_has_no_translations_is_told_where_they_are(xlm, tmp_path, monkeypatch):
    monkeypatch.setenv(public_sources.CORPORA, str(tmp_path))
    task = seqio.TaskRegistry.get("xlm_en_tr_tlm").replace(source=xlm.translations("tr"))
    with pytest.raises(corpora.MissingFileError, match=r"tasks/xlm.py says where translations are"):
        read(task)


def test_texts_and_translations_have_half_each_and_languages_their_power(xlm):
    """A hundred times the text is 100 ** 0.7 = 25.1 times the examples; translations count for themselves."""
    counts = {task.name: 100 for task in mixtures.leaf_tasks("xlm_mlm_tlm")}
    counts["xlm_en_mlm"] = 10_000
    rates = mixtures.flat_rates("xlm_mlm_tlm", counts)
    assert len(rates) == 15 + 14
    assert sum(rate for name, rate in rates.items() if name.endswith("_tlm")) == pytest.approx(0.5)
    assert sum(rates.values()) == pytest.approx(1.0)
    assert rates["xlm_en_mlm"] / rates["xlm_sw_mlm"] == pytest.approx(100**0.7)
