import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import denoising_objectives, examples, registry  # noqa: E402
from t2t.data.vocabularies import bind_vocabulary  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

BYTES = ByteVocabulary()
TEXTS = ["Cast the net. Haul it in. " * 3, "The sea is wide.", "A boat. An oar? No sail!"]


def texts(split):
    return [{"body": text} for text in TEXTS]


@pytest.fixture(scope="module")
def names():
    source = registry.TextSource(texts, splits=("train",))
    made = denoising_objectives.add_bart_objectives("nets", source, field="body")
    made += denoising_objectives.add_t5_grid(
        "nets", source, field="body", objectives=("lm", "all_permute", "iid_15_u_u")
    )
    yield made
    for name in made:
        seqio.TaskRegistry.remove(name)


def load(name, length=40):
    lengths = {"inputs": length, "targets": length}
    return examples.load_examples(name, "train", vocabulary=BYTES, lengths=lengths, seed=0)


def test_every_noise_is_registered(names):
    assert set(names) >= {"nets_text_infilling", "nets_bart_released", "nets_autoencoding", "nets_t5_iid_15_u_u"}
    assert set(names) <= set(seqio.TaskRegistry.names())
    for name in names:
        corruption = seqio.TaskRegistry.get(name).preprocessors[-1]
        assert set(seqio.TaskRegistry.get(name).output_features) == set(corruption.makes)


def test_noised_texts_are_of_single_documents(names):
    task = load("nets_bart_released")
    found = [BYTES.decode(task.example(i, epoch=3)["targets"]) for i in range(len(task))]
    assert found == [TEXTS[0][:39], TEXTS[0][39:], TEXTS[1], TEXTS[2]]
    for epoch in range(3):
        for i in range(len(task)):
            example = task.example(i, epoch=epoch)
            assert all(len(example[side]) <= 40 and example[side][-1] == BYTES.eos_id for side in task.features)


def test_other_objectives_join_documents(names):
    task = load("nets_t5_iid_15_u_u")
    raw = [task.store[i]["targets"] for i in range(len(task))]
    assert "".join(map(BYTES.decode, raw)) == "".join(TEXTS)
    assert {len(tokens) for tokens in raw[:-1]} == {39}
    together, alone = task.examples(range(len(task)), epoch=2), [task.example(i, epoch=2) for i in range(len(task))]
    assert len({len(example["inputs"]) for example in alone}) > 1
    for both in zip(together, alone, strict=True):
        for side in ("inputs", "targets"):
            np.testing.assert_array_equal(*(example[side] for example in both))
    chunks = {name: seqio.TaskRegistry.get(f"nets_t5_{name}").preprocessors[-2] for name in ("lm", "all_permute")}
    assert (chunks["lm"].across_documents, chunks["lm"].end_documents) == (True, True)
    assert (chunks["all_permute"].across_documents, chunks["all_permute"].end_documents) == (False, False)


def test_tasks_work_in_plain_seqio(names):
    task = bind_vocabulary(seqio.TaskRegistry.get("nets_bart"), BYTES)
    lengths = {"inputs": 40, "targets": 40}
    made = list(task.get_dataset(lengths, split="train", shuffle=False, seed=1).as_numpy_iterator())
    assert [BYTES.decode(example["targets"]) for example in made] == [TEXTS[0][:39], TEXTS[0][39:], *TEXTS[1:]]
    assert any(BYTES.mask_id in example["inputs"] for example in made)


def test_the_published_settings():
    paper, shares = denoising_objectives.PAPER, {name: one.rate for name, one in denoising_objectives.BART.items()}
    assert (paper.rate, paper.spans, paper.poisson_mean, paper.permute_sentences) == (0.3, "poisson", 3.0, 1.0)
    assert (paper.replace_length, paper.mask_random, paper.insert, paper.rotate) == (1, 0.0, 0.0, 0.0)
    assert [shares[name] for name in ("token_masking", "token_deletion", "text_infilling")] == [0.15, 0.15, 0.3]
    assert {shares[name] for name in ("sentence_permutation", "document_rotation", "autoencoding")} == {0.0}
    released = denoising_objectives.RELEASED
    assert (released.rate, released.poisson_mean, released.permute_sentences) == (0.3, 3.5, 1.0)
    assert (released.replace_length, released.mask_random, released.insert, released.rotate) == (1, 0.1, 0.0, 0.0)
