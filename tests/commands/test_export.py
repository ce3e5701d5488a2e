"""`t2t export` of a trained run: sentence vectors that SentenceTransformer opens."""

import json
import pathlib
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t import cli
from t2t.nn import classification
from tests.commands import test_whole_run

pytestmark = pytest.mark.slow

CONFIG = test_whole_run.MASKED.replace("letters", "syllables")

TASKS = '''"""Lines of syllables."""

from t2t.data import registry


def documents(split):
    return [{"text": f"{word} follows {word.lower()} in the {split} text"} for word in 9 * ["ONE", "TWO", "SIX", "TEN"]]


registry.add_objectives("syllables", registry.TextSource(documents, splits=("train", "validation")))
'''


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> pathlib.Path:
    """A working directory with a trained encoder of masked words in runs/masked."""
    directory = tmp_path_factory.mktemp("here")
    for name, text in {"configs/masked.py": CONFIG, "tasks/syllables.py": TASKS}.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setattr(sys, "path", [str(directory), *sys.path])
        assert cli.main(["train", "masked"]) == 0
        yield directory


@pytest.mark.hf
def test_a_trained_encoder_gives_sentence_vectors(here):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    options = ["--sentence-embeddings", "mean", "--verify"]
    assert cli.main(["export", "runs/masked", "vectors", *options]) == 0
    opened = sentence_transformers.SentenceTransformer(str(here / "vectors"), device="cpu")
    texts = ["ONE", "two", "the text"]
    ours = t2t.load("runs/masked")
    rows = [[*ours.vocabulary.encode(text), ours.vocabulary.eos_id] for text in texts]
    tokens = np.zeros((3, max(map(len, rows))), np.int32)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    segments = (np.arange(tokens.shape[1]) < np.array([[len(row)] for row in rows])).astype(np.int32)
    states = ours.apply({"encoder_input_tokens": tokens, "encoder_segment_ids": segments}).last_hidden
    expected = classification.pool(states, pooling="mean", segment_ids=jnp.asarray(segments))
    np.testing.assert_allclose(opened.encode(texts), expected, atol=1e-4)


def test_a_bare_model_is_imported_from_an_export_with_a_head(here):
    assert cli.main(["export", "runs/masked", "exported"]) == 0
    assert cli.main(["import", "exported", "bare", "--head", "none"]) == 0
    ours, bare = t2t.load("runs/masked"), t2t.load("bare")
    assert ours.config.head is not None and bare.config.head is None
    np.testing.assert_array_equal(bare.params["embed"]["embedding"], ours.params["embed"]["embedding"])


def test_an_output_that_is_the_embedding_is_one_table_in_all_files(here):
    assert cli.main(["export", "runs/masked", "tied", "--shard-gigabytes", "0.00001"]) == 0
    index = json.loads((here / "tied" / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(index.values())) > 1
    assert [name for name in index if name.endswith(("decoder.weight", "word_embeddings.weight"))] == [
        "bert.embeddings.word_embeddings.weight"
    ]
    assert json.loads((here / "tied" / "config.json").read_text())["tie_word_embeddings"] is True
    for model in (t2t.load("runs/masked"), t2t.load("tied")):
        assert model.config.head.tied and "kernel" not in model.params["head"]


@pytest.mark.parametrize("size", ["0", "-1", "nan", "inf"])
def test_sizes_of_shards_that_cannot_be(here, capsys, size):
    assert cli.main(["export", "runs/masked", "none", "--shard-gigabytes", size]) == 2
    assert "give a positive number" in capsys.readouterr().err
    assert not (here / "none").exists()
