import dataclasses

import numpy as np
import pytest
import seqio

from t2t.data import mixing, registry
from t2t.data.corruption_base import BoundCorruption, Corruption
from t2t.data.evaluation import eval_batches, eval_examples, load_eval
from t2t.data.examples import TaskExamples
from t2t.data.features import EncoderDecoderFeatures
from t2t.data.store import TokenStore
from t2t.vocabulary import ByteVocabulary

CONVERTER = EncoderDecoderFeatures(lengths={"inputs": 9, "targets": 7}, start_id=0, eos_id=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Roll(Corruption):
    feature: str = "inputs"
    makes = ("inputs",)
    keeps_lengths_equal = False

    def raw_length(self, sides):
        return None

    def num_uniforms(self, length, sides):
        return 1

    def corrupt(self, tokens, u, sides):
        return {"inputs": np.roll(tokens, int(u[0] * len(tokens)))}


ROLL = BoundCorruption(corruption=Roll(), sides={}, raw_length=None)


def examples(number, *, corruption=None):
    columns = [
        {
            "inputs": np.arange(100 * i + 2, 100 * i + 4 + i % 5, dtype=np.int32),
            "targets": np.full(1 + i % 3, i + 2, np.int32),
        }
        for i in range(number)
    ]
    store = TokenStore.collect(columns)
    return TaskExamples(name="a", split="validation", store=store, corruption=corruption, seed=0)


def seen(batches):
    """Example numbers by the targets of every segment."""
    found = []
    for batch in batches:
        for ids, tokens in zip(batch["decoder_segment_ids"], batch["decoder_target_tokens"], strict=True):
            found += [int(tokens[ids == k][0]) - 2 for k in range(1, ids.max() + 1)]
    return sorted(found)


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("hosts", [1, 2, 4])
@pytest.mark.parametrize("number", [1, 4, 11, 16, 17])
def test_every_example_is_seen_once_on_any_number_of_hosts(number, hosts, packing):
    loaded = examples(number)
    parts = [
        list(eval_batches(loaded, CONVERTER, rows=4, packing=packing, lanes=range(h, 4, hosts))) for h in range(hosts)
    ]
    assert len({len(part) for part in parts}) == 1
    batches = [batch for part in parts for batch in part]
    assert all(len(batch["decoder_segment_ids"]) == 4 // hosts for batch in batches)
    assert seen(batches) == list(range(number))
    assert sum(batch["decoder_loss_weights"].sum() for batch in batches) == sum(1 + i % 3 for i in range(number))
    if not packing:
        assert len(parts[0]) == -(-number // 4)


def test_the_last_batch_is_filled_with_rows_without_weight():
    *_, last = eval_batches(examples(5), CONVERTER, rows=4, trace=True)
    assert last["position"].tolist() == [4, -1, -1, -1]
    assert last["lane"].tolist() == [0, 1, 2, 3]
    assert (last["decoder_loss_weights"].sum(1) > 0).tolist() == [True, False, False, False]
    assert not last["encoder_segment_ids"][1:].any()


def test_the_first_examples_only():
    assert seen(eval_batches(examples(9), CONVERTER, rows=2, max_examples=5)) == [0, 1, 2, 3, 4]
    assert seen(eval_batches(examples(9), CONVERTER, rows=2, max_examples=50, packing=True)) == list(range(9))
    assert len(list(eval_examples(examples(9), CONVERTER, max_examples=5))) == 5


def test_packed_rows_are_full():
    packed = list(eval_batches(examples(30), CONVERTER, rows=1, packing=True))
    assert len(packed) < 25
    assert max(batch["encoder_segment_ids"].max() for batch in packed) >= 2


def test_corruption_is_the_same_at_every_evaluation():
    def read(rows, packing):
        batches = eval_batches(examples(12, corruption=ROLL), CONVERTER, rows=rows, packing=packing)
        return sorted(
            tuple(tokens[ids == k].tolist())
            for batch in batches
            for tokens, ids in zip(batch["encoder_input_tokens"], batch["encoder_segment_ids"], strict=True)
            for k in range(1, ids.max() + 1)
        )

    first = read(4, False)
    assert first == read(4, False) == read(3, True)
    assert any(tokens != tuple(sorted(tokens)) for tokens in first)


def test_raw_examples_for_generation():
    source = registry.TextSource(lambda split: [{"inputs": "a" * 20, "targets": "yes"}], splits=["validation"])
    task = registry.add_text_to_text("eval_qa", source, metric_fns=[], prefix="qa: ")
    try:
        vocabulary = ByteVocabulary()
        loaded = load_eval("eval_qa", vocabulary=vocabulary, lengths={"inputs": 30, "targets": 7}, texts=True)
        (example,) = eval_examples(loaded, CONVERTER)
    finally:
        seqio.TaskRegistry.remove(task.name)
    assert example["inputs_pretokenized"] == "qa: " + "a" * 20
    assert example["targets_pretokenized"] == "yes"
    assert example["inputs"].tolist() == [*vocabulary.encode("qa: aaaa"), 1]
    assert vocabulary.decode(example["targets"].tolist()) == "yes"
    assert loaded.seed == mixing.derive_seed(0, "evaluation", "eval_qa")  # whatever the seed of the run


def test_rows_that_no_batch_has_are_refused():
    with pytest.raises(ValueError, match="one or more of the 3 rows"):
        list(eval_batches(examples(2), CONVERTER, rows=3, lanes=(1, 3)))
