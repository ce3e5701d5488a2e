import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, pair_objectives, pipeline, registry  # noqa: E402
from t2t.data.features import EncoderFeatures  # noqa: E402
from tests.data import toy  # noqa: E402

WORDS = toy.word_vocabulary("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *toy.words(300))
LENGTHS = {"inputs": 16, "targets": 16}
LABELLED = ("mlm_nsp", "mlm_sop", "mlm_sop_ngram", "segment_pairs", "sentence_pairs")


def documents(split):
    size = {"train": 30, "validation": 5}[split]
    return [
        {"text": "\n".join(" ".join(f"w{(7 * i + 3 * j + k) % 300}" for k in range(3)) for j in range(2 + i % 5))}
        for i in range(size)
    ]


def translations(split):
    del split
    return [{"source": f"w{i} w{i + 1}", "target": f"w{i + 100} w{i + 101}"} for i in range(20)]


@pytest.fixture(scope="module")
def names():
    names = pair_objectives.add_pair_objectives(
        "pairs_test", registry.TextSource(documents, splits=("train", "validation"))
    )
    yield names
    for name in names:
        seqio.TaskRegistry.remove(name)


def read(name, split="train", **options):
    return examples.load_examples(name, split, vocabulary=WORDS, lengths=LENGTHS, seed=0, **options)


@pytest.fixture(scope="module")
def pairs(names):
    """The examples of NAME_mlm_nsp."""
    return read(names[0])


def test_the_names_are_those_of_the_formats(names):
    assert names == tuple(f"pairs_test_{suffix}" for suffix in pair_objectives.OBJECTIVES)
    labelled = [name for name in names if "next_sentence_labels" in seqio.TaskRegistry.get(name).output_features]
    assert labelled == [f"pairs_test_{suffix}" for suffix in LABELLED]


@pytest.mark.slow
def test_every_format_makes_what_it_promises(names):
    for name in names:
        task = read(name)
        example = task.example(3, epoch=0)
        suffix = name.removeprefix("pairs_test_")
        expected = {"inputs", "targets", "weights"}
        expected |= {"token_types", "pair_kinds"} if suffix not in ("full_sentences", "doc_sentences") else set()
        expected |= {"next_sentence_labels"} if suffix in LABELLED else set()
        assert task.features == expected
        assert set(example) == expected
        assert {len(example[feature]) for feature in expected if example[feature].ndim} == {len(example["inputs"])}
        assert example["targets"][0] == 1 and example["targets"][-1] == 2
        assert not example["weights"][np.isin(example["targets"], [1, 2])].any()
        share = example["weights"].sum() / len(example["inputs"])
        rate = 0.25 if suffix == "electra_quarter" else 0.15
        assert abs(share - rate) <= 1 / len(example["inputs"])


def test_masks_are_drawn_anew_and_pairs_are_not(pairs):
    masks = {tuple(pairs.example(0, epoch=epoch)["weights"]) for epoch in range(40)}
    texts = {tuple(pairs.example(0, epoch=epoch)["targets"]) for epoch in range(40)}
    assert len(texts) == 1 < len(masks)


@pytest.mark.slow
def test_electra_masks_without_random_tokens(names):
    task = read("pairs_test_electra")
    kept = replaced = 0
    for epoch in range(40):
        for index in range(len(task)):
            example = task.example(index, epoch=epoch)
            chosen = example["weights"] == 1
            kept += int((example["inputs"] == example["targets"])[chosen].sum())
            assert ((example["inputs"] == 3) == (example["inputs"] != example["targets"])).all()
            replaced += int((example["inputs"] == 3).sum())
    total = kept + replaced
    assert abs(kept - 0.15 * total) < 4 * (total * 0.15 * 0.85) ** 0.5


@pytest.mark.slow
def test_duplicates_reach_the_random_formats(names):
    sizes = {name: len(read(name)) for name in names}
    source = registry.TextSource(documents, splits=("train", "validation"))
    for name in pair_objectives.add_pair_objectives("pairs_thrice", source, duplicates=3):
        suffix = name.removeprefix("pairs_thrice_")
        once, thrice = sizes[f"pairs_test_{suffix}"], len(read(name))
        assert thrice == once if suffix in ("full_sentences", "doc_sentences") else 2 * once < thrice < 4 * once
        seqio.TaskRegistry.remove(name)


def test_labelled_pairs_take_a_row_each_and_the_others_share(pairs):
    lengths = {"inputs": 40, "targets": 40}
    converter = EncoderFeatures(lengths=lengths, pad_id=0, eos_id=2, num_types=2, next_sentence=True)
    stream = pipeline.Stream.of([pairs], [1.0], converter, seed=0)
    batch = next(pipeline.TrainPipeline(stream, rows=8))
    assert batch["encoder_segment_ids"].max() == 1
    assert set(batch["next_sentence_labels"]) == {0, 1}
    assert batch["encoder_token_types"].max() == 1
    plain = EncoderFeatures(lengths=lengths, pad_id=0, eos_id=2, num_types=2)
    batch = next(pipeline.TrainPipeline(pipeline.Stream.of([pairs], [1.0], plain, seed=0), rows=8))
    assert batch["encoder_segment_ids"].max() > 1
    assert "next_sentence_labels" not in batch
    with pytest.raises(ValueError, match=r"lacks \['next_sentence_labels'\]"):
        converter.check_task("a", {"inputs", "targets"})


@pytest.mark.slow
def test_plain_seqio_gives_the_same_examples(names):
    ours = read(names[1])
    task = examples.vocabularies.bind_vocabulary(seqio.TaskRegistry.get(names[1]), WORDS)
    rows = list(task.get_dataset(LENGTHS, "train", shuffle=False, seed=4).as_numpy_iterator())
    assert len(rows) == len(ours)
    for index, row in enumerate(rows):
        example = ours.example(index, epoch=0)
        for feature in ("targets", "token_types", "next_sentence_labels"):
            np.testing.assert_array_equal(row[feature], example[feature])


@pytest.mark.slow
def test_the_cache_keeps_labels_and_types(names, pairs, tmp_path):
    read(names[0], cache_dir=tmp_path)
    again = read(names[0], cache_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    for index in range(len(pairs)):
        for feature, values in pairs.example(index, epoch=1).items():
            np.testing.assert_array_equal(values, again.example(index, epoch=1)[feature])


def test_translations():
    source = registry.TextSource(translations, splits=("train",))
    name = pair_objectives.add_translations("pairs_test", source, pair=(0, 1))
    task = read(name)
    seqio.TaskRegistry.remove(name)
    assert name == "pairs_test_tlm"
    assert task.features == {"inputs", "targets", "weights", "positions", "language_ids"}
    assert task.example(0, epoch=0)["targets"].tolist() == [2, 5, 6, 2, 2, 105, 106, 2]
    assert task.example(0, epoch=0)["positions"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
