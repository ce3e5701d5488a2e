"""Replaced token detection: what the discriminator reads, its labels, who learns from what, the law of the samples."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

from t2t.models.electra import DISCRIMINATOR, GENERATOR
from t2t.objectives import replaced_tokens
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from tests.models import electra_tiny
from tests.models.electra_tiny import MASK, VOCAB_SIZE

KEY = jax.random.key(7)
AT_POSITIONS, DENSE, ORIGINAL = electra_tiny.batches()
CHOSEN = DENSE["encoder_loss_weights"] > 0
REAL = DENSE["encoder_segment_ids"] > 0


class Spy:
    """Passes calls on and keeps what the discriminator read."""

    def __init__(self, network):
        self.network, self.read = network, None

    def __getattr__(self, name):
        return getattr(self.network, name)

    def hidden(self, params, batch, *, key=None):
        self.read = batch["encoder_input_tokens"]
        return self.network.hidden(params, batch, key=key)


@pytest.fixture(scope="module")
def pair():
    config = electra_tiny.pair()
    return config.networks(), electra_tiny.params(config)


def total(objective, networks, params, batch, *, only=None, key=KEY):
    terms, _, _ = objective.loss(networks, params, batch, key=key, carry=())
    return sum(t.coefficient * t.sum / t.weight for name, t in terms.items() if only in (None, name))


def seen_by_the_discriminator(objective, pair, batch, key=KEY):
    networks, params = pair
    spy = Spy(networks[DISCRIMINATOR])
    _, metrics, _ = objective.loss(networks | {DISCRIMINATOR: spy}, params, batch, key=key, carry=())
    return np.asarray(spy.read), metrics


def test_both_forms_of_a_batch_choose_the_same():
    for batch in (AT_POSITIONS, DENSE):
        chosen = replaced_tokens.choose(batch)
        np.testing.assert_array_equal(chosen.originals, ORIGINAL)
        np.testing.assert_array_equal(chosen.everywhere, CHOSEN)


@pytest.mark.parametrize("batch", [AT_POSITIONS, DENSE], ids=["positions", "everywhere"])
@pytest.mark.parametrize("replacements", ["generator", "unigram", "uniform"])
def test_the_discriminator_reads_the_original_and_samples_but_no_mask(pair, batch, replacements):
    objective = ReplacedTokenDetection(mask_id=MASK, replacements=replacements)
    read, metrics = seen_by_the_discriminator(objective, pair, batch)
    np.testing.assert_array_equal(read[~CHOSEN], ORIGINAL[~CHOSEN])
    assert MASK not in read
    assert read.min() >= 0
    assert read.max() < VOCAB_SIZE
    is_replaced = read != ORIGINAL
    assert float(metrics["replaced"][0]) == is_replaced.sum() > 0
    assert float(metrics["replaced"][1]) == REAL.sum()
    same, chosen = metrics["sampled_accuracy"]
    assert (float(same), float(chosen)) == ((CHOSEN & ~is_replaced).sum(), CHOSEN.sum())


def test_the_mask_is_never_drawn_even_where_it_is_likeliest():
    logits = jnp.zeros((1, 4000, VOCAB_SIZE)).at[..., MASK].set(50.0)
    drawn = ReplacedTokenDetection(mask_id=MASK).sample(logits, key=KEY)
    assert MASK not in np.asarray(drawn)
    assert set(np.unique(drawn)) == set(range(VOCAB_SIZE)) - {MASK}
    assert np.all(np.asarray(ReplacedTokenDetection().sample(logits, key=KEY)) == MASK)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_follow_the_generators_probabilities(temperature):
    number = 40_000
    logits = np.array([0.0, 1.0, 2.0, -1.0], np.float32)
    drawn = ReplacedTokenDetection(temperature=temperature).sample(
        jnp.broadcast_to(jnp.array(logits), (1, number, 4)), key=KEY
    )
    expected = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    counts = np.bincount(np.asarray(drawn).ravel(), minlength=4)
    assert np.all(np.abs(counts - number * expected) < 4 * np.sqrt(number * expected * (1 - expected)))


def test_unigram_draws_in_proportion_to_the_real_tokens_of_the_batch(pair):
    objective = ReplacedTokenDetection(replacements="unigram")
    counts = np.zeros(VOCAB_SIZE)
    draw = jax.jit(lambda key: objective._sample_without_model(pair[0], DENSE, replaced_tokens.choose(DENSE), key=key))
    for index in range(300):
        counts += np.bincount(np.asarray(draw(jax.random.key(index))).ravel(), minlength=VOCAB_SIZE)
    share = np.bincount(ORIGINAL[REAL], minlength=VOCAB_SIZE) / REAL.sum()
    number = counts.sum()
    assert np.all(counts[share == 0] == 0)
    assert np.all(np.abs(counts - number * share) <= 4 * np.sqrt(number * share * (1 - share)))


def test_detection_teaches_the_generator_nothing_but_the_shared_embeddings(pair):
    networks, params = pair
    objective = ReplacedTokenDetection(mask_id=MASK)
    gradients = jax.grad(lambda p: total(objective, networks, p, DENSE, only="detection"))(params)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradients[GENERATOR]))
    assert np.any(gradients[DISCRIMINATOR]["embed"]["embedding"])
    of_words = jax.grad(lambda p: total(objective, networks, p, DENSE, only="cross_entropy"))(params)
    touched = {
        path for path, leaf in traverse_util.flatten_dict(of_words[DISCRIMINATOR], sep="/").items() if np.any(leaf)
    }
    assert touched == {"embed/embedding", "embed/positions", "embed/types", "embed/norm/scale", "embed/norm/bias"}


def test_the_loss_is_the_weighted_sum_of_both(pair):
    networks, params = pair
    objective = ReplacedTokenDetection(coefficient=3.0, generator_coefficient=0.5)
    terms, _, _ = objective.loss(networks, params, DENSE, key=KEY, carry=())
    means = {name: float(term.sum / term.weight) for name, term in terms.items()}
    whole = float(total(objective, networks, params, DENSE))
    assert whole == pytest.approx(0.5 * means["cross_entropy"] + 3.0 * means["detection"], rel=1e-6)
    assert {name: float(term.weight) for name, term in terms.items()} == {
        name: float(weight) for name, weight in objective.weights(DENSE).items()
    }


@pytest.mark.parametrize("judged", ["all", "chosen"])
def test_judged_tokens(pair, judged):
    objective = ReplacedTokenDetection(judged=judged)
    weight = float(objective.weights(AT_POSITIONS)["detection"])
    assert weight == (REAL if judged == "all" else CHOSEN).sum()
    networks, params = pair
    read, metrics = seen_by_the_discriminator(objective, pair, AT_POSITIONS)
    logits = np.asarray(
        networks[DISCRIMINATOR]
        .hidden(networks[DISCRIMINATOR].whole(params), {**AT_POSITIONS, "encoder_input_tokens": read})
        .logits
    )
    counted = REAL if judged == "all" else CHOSEN
    labels = read != ORIGINAL
    want = (np.log1p(np.exp(logits)) - labels * logits)[counted].sum()
    terms, _, _ = objective.loss(networks, params, AT_POSITIONS, key=KEY, carry=())
    assert float(terms["detection"].sum) == pytest.approx(want, rel=1e-4)
    positive = logits > 0
    assert float(metrics["detection_precision"][0]) == (positive & labels)[counted].sum()
    assert float(metrics["detection_precision"][1]) == positive[counted].sum()
    assert float(metrics["detection_recall"][1]) == labels[counted].sum()
    assert float(metrics["detection_accuracy"][0]) == (positive == labels)[counted].sum()


def test_evaluation_is_deterministic_and_training_draws_anew(pair):
    objective = ReplacedTokenDetection()
    twice = [seen_by_the_discriminator(objective, pair, DENSE, key=None)[0] for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    others = [seen_by_the_discriminator(objective, pair, DENSE, key=jax.random.key(i))[0] for i in range(2)]
    assert np.any(others[0] != others[1])


def test_a_perfect_generator_leaves_nothing_to_find(pair):
    """Samples that are the original count as original."""
    networks, params = pair
    spike = jax.nn.one_hot(jnp.asarray(ORIGINAL), VOCAB_SIZE) * 1e3
    perfect = dataclasses.replace(networks[GENERATOR])
    object.__setattr__(perfect, "logits", lambda theta, hidden: spike)
    read, metrics = seen_by_the_discriminator(
        ReplacedTokenDetection(mask_id=MASK), (networks | {GENERATOR: perfect}, params), DENSE
    )
    np.testing.assert_array_equal(read, ORIGINAL)
    assert float(metrics["replaced"][0]) == 0
    assert float(metrics["sampled_accuracy"][0]) == CHOSEN.sum()


@pytest.mark.parametrize(
    "options",
    [{"coefficient": -1.0}, {"temperature": 0.0}],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ReplacedTokenDetection(**options)


def test_the_mask_comes_from_the_vocabulary():
    from t2t.vocabulary import ByteVocabulary

    vocabulary = ByteVocabulary(mask=True)
    assert ReplacedTokenDetection().for_vocabulary(vocabulary).mask_id == vocabulary.mask_id
    assert ReplacedTokenDetection(mask_id=3).for_vocabulary(vocabulary).mask_id == 3
