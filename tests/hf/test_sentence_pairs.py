"""What a model has learned of pairs of sentences, transformers says of the same texts with its export, label for label.

BERT's second sentence follows the first (0) or is a random one (1), ALBERT's two are in order (0) or swapped (1).
"""

import jax
import numpy as np
import pytest

import t2t
from t2t import heads
from t2t.data import segment_pairs
from t2t.data.corruption import example_rng
from t2t.data.documents import Documents, SequenceFrame
from t2t.families import albert, bert
from t2t.models.base import Network
from t2t.objectives.sentence_pairs import SentencePairModeling
from tests.data import toy
from tests.hf import tiny

pytestmark = [pytest.mark.hf, pytest.mark.slow]

WORDS = toy.word_vocabulary("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *toy.words(16))
DOCUMENTS = Documents.of_lists([[[i, i + 1], [i + 2, i + 3]] for i in range(5, 21, 4)])  # two sentences of two words
LENGTH = 7
SIZES = {"num_layers": 1, "d_model": 24, "num_heads": 3, "d_ff": 28, "vocab_size": WORDS.size, "max_positions": 9}
DRAW = {
    "bert": (bert.with_head(bert.bert(**SIZES), heads.PRETRAINING), segment_pairs.next_sentence_pairs),
    "albert": (
        albert.with_head(albert.albert(**SIZES, embed_dim=20), heads.PRETRAINING),
        segment_pairs.sentence_order_pairs,
    ),
}


def pairs_of(draw) -> list[segment_pairs.Pair]:
    """Those of some copies of the documents, each once, of both labels."""
    drawn = [
        pair
        for copy in range(4)
        for index in range(len(DOCUMENTS))
        for pair in draw(DOCUMENTS, index, example_rng(0, copy, index), room=4, short_rate=0.0)
    ]
    whole = {pair[:4]: pair for pair in drawn if pair.cut == 0 and pair.b_stop - pair.b_start == 2}
    return list(whole.values())[: SIZES["d_model"]]


def batch_of(pairs) -> dict[str, np.ndarray]:
    """Their examples as training reads them, without masked words."""
    frame = SequenceFrame(length=LENGTH, bos_id=WORDS.bos_id, eos_id=WORDS.eos_id)
    made = segment_pairs.finish_pairs(DOCUMENTS.tokens, segment_pairs.as_plan(pairs), frame=frame)
    tokens, types = (array.reshape(len(pairs), LENGTH) for array in (made.tokens, made.token_types))
    return {
        "encoder_input_tokens": tokens,
        "encoder_token_types": types,
        "encoder_target_tokens": tokens,
        "encoder_loss_weights": np.zeros(tokens.shape, np.float32),
        "next_sentence_labels": segment_pairs.labels(made.kinds),
    }


def learned(config, batch):
    """Random parameters whose last layer knows the labels by heart: there are no more pairs than it has inputs."""
    network, params = Network(config), jax.tree.map(lambda leaf: 0.3 * leaf, tiny.params(config))
    states = np.asarray(jax.jit(lambda p: network.apply(p, batch).pooled)(params), np.float64)
    wanted = 8.0 * (np.arange(2) == batch["next_sentence_labels"][:, None])
    kernel = np.linalg.lstsq(states, wanted, rcond=None)[0]
    params["head"]["next_sentence"] = {"kernel": kernel.astype(np.float32), "bias": np.zeros(2, np.float32)}

    def loss(params):
        models, objective = {"model": network}, SentencePairModeling()
        return objective.loss(models, {"model": params}, batch, key=None, carry=())[0]["next_sentence"]

    term = jax.jit(loss)(params)
    assert float(term.sum / term.weight) < 0.1
    return params


@pytest.mark.parametrize("name", DRAW)
def test_labels_mean_the_same(name, tmp_path):
    import torch
    import transformers

    config, draw = DRAW[name]
    pairs = pairs_of(draw)
    batch = batch_of(pairs)
    labels = batch["next_sentence_labels"]
    assert {0, 1} == set(labels.tolist())
    t2t.Model(config=config, params=learned(config, batch), vocabulary=WORDS).export(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [[WORDS.decode(DOCUMENTS.tokens[a:b]) for a, b in (pair[:2], pair[2:4])] for pair in pairs]
    given = tokenizer(*map(list, zip(*texts, strict=True)), return_tensors="pt")
    np.testing.assert_array_equal(given["input_ids"], batch["encoder_input_tokens"])
    np.testing.assert_array_equal(given["token_type_ids"], batch["encoder_token_types"])
    model = transformers.AutoModelForPreTraining.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        found = model(**given)
    scores = found["seq_relationship_logits" if name == "bert" else "sop_logits"]
    np.testing.assert_array_equal(scores.argmax(-1), labels)
    if name == "bert":  # which has a class for this head alone
        t2t.load(tmp_path, head=heads.NextSentence()).export(tmp_path / "next")
        alone = transformers.AutoModelForNextSentencePrediction.from_pretrained(tmp_path / "next").eval()
        with torch.no_grad():
            np.testing.assert_array_equal(alone(**given).logits.argmax(-1), labels)
