import dataclasses

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from shared_data import shared_data

from t2t.data import features
from t2t.data.features import DecoderFeatures, EncoderDecoderFeatures, EncoderFeatures, PrefixLMFeatures
from t2t.vocabulary.frame import Frame


def example(**arrays):
    return {name: np.array(values, np.int32) for name, values in arrays.items()}


def equal(batch, **expected):
    for name, values in expected.items():
        np.testing.assert_array_equal(batch[name], values, err_msg=name)


def pack(converter, examples, *, group):
    """Greedy rows, closed after every `group` examples as seqio does; one example per row where group is 1."""
    rows = []
    for start in range(0, len(examples), group):
        row, room = [], converter.capacity
        for x in examples[start : start + group]:
            sizes = converter.sizes(x)
            if any(size > left for size, left in zip(sizes, room, strict=True)):
                rows.append(row)
                row, room = [], converter.capacity
            row.append(x)
            room = tuple(left - size for size, left in zip(sizes, room, strict=True))
        rows.append(row)
    return rows


def test_encoder_decoder_packs_two_examples_as_written_out():
    converter = EncoderDecoderFeatures(lengths={"inputs": 6, "targets": 7}, start_id=0)
    rows = [[example(inputs=[5, 6, 1], targets=[8, 1]), example(inputs=[7, 1], targets=[9, 9, 1])], []]
    batch = converter.convert(rows)
    equal(
        batch,
        encoder_input_tokens=[[5, 6, 1, 7, 1, 0], [0] * 6],
        encoder_segment_ids=[[1, 1, 1, 2, 2, 0], [0] * 6],
        encoder_positions=[[0, 1, 2, 0, 1, 0], [0] * 6],
        decoder_target_tokens=[[8, 1, 9, 9, 1, 0, 0], [0] * 7],
        decoder_input_tokens=[[0, 8, 0, 9, 9, 0, 0], [0] * 7],
        decoder_loss_weights=[[1, 1, 1, 1, 1, 0, 0], [0] * 7],
        decoder_segment_ids=[[1, 1, 2, 2, 2, 0, 0], [0] * 7],
        decoder_positions=[[0, 1, 0, 1, 2, 0, 0], [0] * 7],
    )
    assert {name: array.dtype.name for name, array in batch.items()} == {
        name: "float32" if name.endswith("weights") else "int32" for name in batch
    }


def test_segment_numbers_agree_on_both_sides_where_one_is_empty():
    converter = EncoderDecoderFeatures(lengths={"inputs": 4, "targets": 4}, start_id=3)
    rows = [[example(inputs=[5], targets=[]), example(inputs=[], targets=[6, 7]), example(inputs=[8], targets=[9])]]
    equal(
        converter.convert(rows),
        encoder_segment_ids=[[1, 3, 0, 0]],
        decoder_segment_ids=[[2, 2, 3, 0]],
        decoder_input_tokens=[[3, 6, 3, 0]],
    )


def test_texts_of_bart_begin_with_bos_and_its_decoder_with_eos():
    """As transformers' tokenizer and shift: <s> x </s> on both sides, the decoder reads </s> <s> x."""
    frame = Frame(bos_id=0, eos_id=2)
    converter = EncoderDecoderFeatures(lengths={"inputs": 4, "targets": 5}, start_id=2, pad_id=1, eos_id=2, frame=frame)
    framed, cut = converter.trim(example(inputs=[5, 6, 7, 2], targets=[8, 9, 2]))
    assert cut == 1
    equal(
        converter.convert([[framed]]),
        encoder_input_tokens=[[0, 5, 6, 2]],
        decoder_target_tokens=[[0, 8, 9, 2, 1]],
        decoder_input_tokens=[[2, 0, 8, 9, 1]],
        decoder_loss_weights=[[1, 1, 1, 1, 0]],
    )
    with pytest.raises(features.OverlongError, match="5 tokens of 'inputs'"):
        dataclasses.replace(converter, overlong="error").trim(example(inputs=[5, 6, 7, 2], targets=[8, 2]))


def test_decoders_of_mbart_begin_with_the_language_of_their_text():
    """Of an example whose target has a code the decoder starts with it; of others with the usual token."""
    frame = Frame(eos_id=2, language_ids=frozenset({50, 51}))
    converter = EncoderDecoderFeatures(lengths={"inputs": 8, "targets": 9}, start_id=0, pad_id=1, eos_id=2, frame=frame)
    rows = [[example(inputs=[5, 6, 50, 2], targets=[8, 9, 51, 2]), example(inputs=[7, 50, 2], targets=[4, 2])]]
    rows = [[converter.trim(x)[0] for x in row] for row in rows]
    equal(
        converter.convert(rows),
        encoder_input_tokens=[[5, 6, 2, 50, 7, 2, 50, 1]],
        decoder_target_tokens=[[8, 9, 2, 51, 4, 2, 1, 1, 1]],
        decoder_input_tokens=[[51, 8, 9, 2, 0, 4, 1, 1, 1]],
        decoder_segment_ids=[[1, 1, 1, 1, 2, 2, 0, 0, 0]],
    )


def test_no_token_is_taken_for_padding():
    """Padding equal to EOS (GPT-2), another than 0 (RoBERTa), and zeros inside the text."""
    converter = EncoderDecoderFeatures(lengths={"inputs": 5, "targets": 4}, start_id=2, pad_id=1)
    batch = converter.convert([[example(inputs=[0, 7, 0], targets=[0, 1, 1])]])
    equal(
        batch,
        encoder_input_tokens=[[0, 7, 0, 1, 1]],
        encoder_segment_ids=[[1, 1, 1, 0, 0]],
        decoder_target_tokens=[[0, 1, 1, 1]],
        decoder_input_tokens=[[2, 0, 1, 1]],
        decoder_loss_weights=[[1, 1, 1, 0]],
        decoder_segment_ids=[[1, 1, 1, 0]],
    )


def test_decoder_reads_targets_alone():
    converter = DecoderFeatures(lengths={"targets": 5}, start_id=9, pad_id=9)
    equal(
        converter.convert([[example(targets=[3, 9]), example(targets=[4, 5])]]),
        decoder_target_tokens=[[3, 9, 4, 5, 9]],
        decoder_input_tokens=[[9, 3, 9, 4, 9]],
        decoder_loss_weights=[[1, 1, 1, 1, 0]],
        decoder_segment_ids=[[1, 1, 2, 2, 0]],
        decoder_positions=[[0, 1, 0, 1, 0]],
    )


def test_causal_decoder_learns_text_to_text_tasks_from_targets_only():
    converter = DecoderFeatures(lengths={"inputs": 3, "targets": 3}, start_id=0)
    batch = converter.convert([[example(inputs=[5, 6], targets=[7, 1])]])
    assert "decoder_causal_attention" not in batch
    equal(batch, decoder_target_tokens=[[5, 6, 7, 1, 0, 0]], decoder_loss_weights=[[0, 0, 1, 1, 0, 0]])


def test_prefix_lm_marks_the_start_and_the_prefix_of_each_example():
    converter = PrefixLMFeatures(lengths={"inputs": 4, "targets": 4}, start_id=0)
    rows = [[example(inputs=[5, 6], targets=[7, 1]), example(inputs=[], targets=[8]), example(inputs=[9], targets=[])]]
    expected = {
        "decoder_target_tokens": [[5, 6, 7, 1, 8, 9, 0, 0]],
        "decoder_input_tokens": [[0, 5, 6, 7, 0, 0, 0, 0]],
        "decoder_causal_attention": [[1, 1, 1, 0, 1, 1, 0, 0]],
        "decoder_loss_weights": [[0, 0, 1, 1, 1, 0, 0, 0]],
        "decoder_segment_ids": [[1, 1, 1, 1, 2, 3, 0, 0]],
        "decoder_positions": [[0, 1, 2, 3, 0, 0, 0, 0]],
    }
    equal(converter.convert(rows), **expected)
    everywhere = dataclasses.replace(converter, loss_on_targets_only=False)
    equal(everywhere.convert(rows), **expected | {"decoder_loss_weights": [[1, 1, 1, 1, 1, 1, 0, 0]]})


def test_encoder_has_loss_where_weights_say_also_on_random_and_kept_tokens():
    converter = EncoderFeatures(lengths={"inputs": 6}, predictions=3)
    rows = [
        [
            example(inputs=[2, 99, 7], targets=[2, 6, 7], weights=[0, 1, 1]),
            example(inputs=[2, 8], targets=[2, 5], weights=[0, 1]),
        ],
        [],
    ]
    equal(
        converter.convert(rows),
        encoder_input_tokens=[[2, 99, 7, 2, 8, 0], [0] * 6],
        encoder_target_tokens=[[2, 6, 7, 2, 5, 0], [0] * 6],
        encoder_loss_weights=[[0, 1, 1, 0, 1, 0], [0] * 6],
        encoder_segment_ids=[[1, 1, 1, 2, 2, 0], [0] * 6],
        encoder_positions=[[0, 1, 2, 0, 1, 0], [0] * 6],
        encoder_predict_positions=[[1, 2, 4], [0] * 3],
        encoder_predict_targets=[[6, 7, 5], [0] * 3],
        encoder_predict_weights=[[1, 1, 1], [0] * 3],
    )


def test_places_beyond_the_predictions_lose_their_loss_evenly():
    converter = EncoderFeatures(lengths={"inputs": 6}, predictions=3)
    x = example(inputs=[3, 4, 5, 6, 7, 8], targets=[3, 4, 5, 6, 7, 8], weights=[1, 1, 1, 1, 1, 1])
    assert converter.sizes(x) == (6, 3)
    equal(
        converter.convert([[x]]),
        encoder_predict_positions=[[0, 2, 4]],
        encoder_predict_targets=[[3, 5, 7]],
        encoder_loss_weights=[[1, 0, 1, 0, 1, 0]],
    )


def test_encoder_carries_what_examples_say_of_each_token():
    converter = EncoderFeatures(lengths={"inputs": 8}, num_types=2, num_languages=4)
    pair = example(
        inputs=[1, 5, 2, 2, 6, 2],
        targets=[1, 5, 2, 2, 6, 2],
        token_types=[0, 0, 0, 1, 1, 1],
        positions=[0, 1, 2, 0, 1, 2],
        language_ids=[3, 3, 3, 0, 0, 0],
    )
    plain = example(inputs=[7, 8], targets=[7, 8])
    of_one_language = example(inputs=[9], targets=[9]) | {"language_ids": np.int32(2)}
    equal(
        converter.convert([[pair, plain], [of_one_language], []]),
        encoder_token_types=[[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8, [0] * 8],
        encoder_positions=[[0, 1, 2, 0, 1, 2, 0, 1], [0] * 8, [0] * 8],
        encoder_language_ids=[[3, 3, 3, 0, 0, 0, -1, -1], [2] + [-1] * 7, [-1] * 8],
        encoder_segment_ids=[[1, 1, 1, 1, 1, 1, 2, 2], [1] + [0] * 7, [0] * 8],
    )
    bare = EncoderFeatures(lengths={"inputs": 8}).convert([[pair]])
    assert not {"encoder_token_types", "encoder_language_ids", "next_sentence_labels"} & set(bare)
    equal(bare, encoder_positions=[[0, 1, 2, 0, 1, 2, 0, 0]])


def test_encoder_refuses_ids_that_the_model_lacks():
    x = example(inputs=[1, 5], targets=[1, 5], language_ids=[0, 4], token_types=[0, 2])
    with pytest.raises(ValueError, match="'language_ids' from 0 to 4, but the model has 4"):
        EncoderFeatures(lengths={"inputs": 2}, num_languages=4).convert([[x]])
    with pytest.raises(ValueError, match="'token_types' from 0 to 2, but the model has 2"):
        EncoderFeatures(lengths={"inputs": 2}, num_types=2).convert([[x]])


def test_examples_with_a_label_have_a_row_each():
    converter = EncoderFeatures(lengths={"inputs": 6}, next_sentence=True)
    pairs = [example(inputs=[1, 5], targets=[1, 5]) | {"next_sentence_labels": np.int32(k)} for k in (1, 0)]
    assert [converter.sizes(pair) for pair in pairs] == [(6,), (6,)]
    assert converter.sizes(example(inputs=[])) == (0,)
    batch = converter.convert([[pairs[0]], [], [pairs[1]]])
    equal(batch, next_sentence_labels=[1, -1, 0], encoder_segment_ids=[[1, 1] + [0] * 4, [0] * 6, [1, 1] + [0] * 4])
    assert batch["next_sentence_labels"].dtype == np.int32
    assert pack(converter, pairs, group=2) == [[pairs[0]], [pairs[1]]]
    with pytest.raises(ValueError, match="2 examples with next_sentence_labels share a row"):
        converter.convert([pairs])
    with pytest.raises(ValueError, match=r"Task 'a' .*lacks \['next_sentence_labels'\]"):
        converter.check_task("a", {"inputs", "targets"})


def test_everything_of_a_token_is_cut_with_it():
    converter = EncoderFeatures(lengths={"inputs": 4}, eos_id=2)
    x = example(
        inputs=[1, 5, 2, 6, 7, 2],
        targets=[1, 5, 2, 6, 7, 2],
        token_types=[0, 0, 0, 1, 1, 1],
        positions=[0, 1, 2, 0, 1, 2],
    ) | {"language_ids": np.int32(1), "next_sentence_labels": np.int32(1)}
    trimmed, cut = converter.trim(x)
    assert cut == 2
    equal(trimmed, inputs=[1, 5, 2, 2], token_types=[0, 0, 0, 1], positions=[0, 1, 2, 0], language_ids=1)
    with pytest.raises(ValueError, match="'token_types' 1: must be equal"):
        converter.trim(example(inputs=[1, 2], targets=[1, 2], token_types=[0]))


def test_encoder_without_weights_has_loss_everywhere():
    batch = EncoderFeatures(lengths={"inputs": 3}).convert([[example(inputs=[4, 5], targets=[6, 7])]])
    equal(batch, encoder_loss_weights=[[1, 1, 0]])
    assert batch["encoder_loss_weights"].dtype == np.float32


GOLDEN = {
    "encdec": EncoderDecoderFeatures(lengths={"inputs": 24, "targets": 16}, start_id=0),
    "lm": DecoderFeatures(lengths={"targets": 16}, start_id=0),
    "prefixlm": PrefixLMFeatures(lengths={"inputs": 16, "targets": 16}, start_id=0),
    "encoder": EncoderFeatures(lengths={"inputs": 24}),
}


@pytest.mark.parametrize("layout", ["plain", "packed"])
@pytest.mark.parametrize("name", GOLDEN)
def test_equals_seqio(name, layout):
    """Differs: plain batches hold segment ids and positions too, and no EOS in the first padding of decoder inputs."""
    golden = np.load(shared_data("t5x_golden", "packing_feature_converters.npz"))
    converter = GOLDEN[name]
    examples = [{key: golden[f"src_{i}_{key}"] for key in ("inputs", "targets")} for i in range(30)]
    if name == "encoder":  # its file was made with targets = inputs and mask id 99: the loss is on the masks
        examples = [x | {"targets": x["inputs"], "weights": (x["inputs"] == 99).astype(np.int32)} for x in examples]
    group = max(converter.capacity) if layout == "packed" else 1
    batch = converter.convert(pack(converter, examples, group=group))
    keys = [key for key in golden if key.startswith(f"{name}_{layout}_")]
    assert len(keys) >= 3
    expected = {key.removeprefix(f"{name}_{layout}_"): golden[key] for key in keys}
    if layout == "plain" and name != "encoder":
        expected["decoder_input_tokens"] = expected["decoder_input_tokens"] * (batch["decoder_segment_ids"] > 0)
    equal(batch, **expected)


def test_trim_keeps_the_end_of_sequence():
    converter = EncoderDecoderFeatures(lengths={"inputs": 3, "targets": 3}, start_id=0, eos_id=1)
    trimmed, cut = converter.trim(example(inputs=[5, 6, 7, 8, 1], targets=[5, 6, 7, 8]))
    equal(trimmed, inputs=[5, 6, 1], targets=[5, 6, 7])
    assert cut == 3
    short = example(inputs=[5, 1], targets=[1])
    assert converter.trim(short) == (short, 0)


def test_trim_cuts_inputs_targets_and_weights_at_the_same_places():
    converter = EncoderFeatures(lengths={"inputs": 3}, eos_id=1)
    trimmed, cut = converter.trim(example(inputs=[5, 99, 7, 1], targets=[5, 6, 7, 8], weights=[0, 1, 1, 0]))
    equal(trimmed, inputs=[5, 99, 1], targets=[5, 6, 8], weights=[0, 1, 0])
    assert cut == 1
    with pytest.raises(ValueError, match="'targets' 2: must be equal"):
        converter.trim(example(inputs=[5], targets=[5, 6]))


def test_overlong_examples_can_be_refused():
    converter = EncoderDecoderFeatures(lengths={"inputs": 2, "targets": 2}, start_id=0, overlong="error")
    with pytest.raises(features.OverlongError, match=r"3 tokens of 'targets' but lengths\['targets'\] is 2"):
        converter.trim(example(inputs=[5], targets=[5, 6, 7]))


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"lacks \['targets'\], which EncoderDecoderFeatures needs"):
        EncoderDecoderFeatures(lengths={"inputs": 3}, start_id=0)
    with pytest.raises(ValueError, match="positive"):
        DecoderFeatures(lengths={"targets": 0}, start_id=0)
    with pytest.raises(ValueError, match="one length"):
        EncoderFeatures(lengths={"inputs": 3, "targets": 4})
    with pytest.raises(ValueError, match="predictions=0"):
        EncoderFeatures(lengths={"inputs": 3}, predictions=0)
    with pytest.raises(ValueError, match="trim examples first"):
        DecoderFeatures(lengths={"targets": 1}, start_id=0).convert([[example(targets=[1, 2])]])


@pytest.mark.parametrize(
    ("converter", "features", "message"),
    [
        (GOLDEN["encdec"], {"targets"}, r"Task 'a' .*lacks \['inputs'\]"),
        (GOLDEN["encoder"], {"inputs"}, r"lacks \['targets'\]"),
        (GOLDEN["lm"], {"inputs", "targets"}, r"has 'inputs', which would not be read: give lengths\['inputs'\]"),
        (DecoderFeatures(lengths={"inputs": 4, "targets": 4}, start_id=0), {"targets"}, r"lacks \['inputs'\]"),
        (GOLDEN["encdec"], {"inputs", "targets", "weights"}, None),
        (GOLDEN["encoder"], {"inputs", "targets", "weights"}, None),
        (GOLDEN["lm"], {"targets"}, None),
    ],
)
def test_tasks_must_suit_the_architecture(converter, features, message):
    if message is None:
        converter.check_task("a", features)
    else:
        with pytest.raises(ValueError, match=message):
            converter.check_task("a", features)


tokens = st.lists(st.integers(0, 3), max_size=6)


@hypothesis.settings(max_examples=20)
@hypothesis.given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=12))
def test_packed_rows_hold_what_single_rows_hold(pairs):
    """Unpacking by segment ids gives every example back, whatever its tokens (pad = EOS = start = 0 here)."""
    converter = PrefixLMFeatures(lengths={"inputs": 6, "targets": 6}, start_id=0)
    examples = [example(inputs=i, targets=t) for i, t in pairs]
    packed = converter.convert(pack(converter, examples, group=len(examples)))
    single = converter.convert([[x] for x in examples])
    for name in packed:
        if name == "decoder_segment_ids":
            continue
        ids, values = packed["decoder_segment_ids"], packed[name]
        found = [values[r][ids[r] == k] for r in range(len(ids)) for k in range(1, ids[r].max() + 1)]
        expected = [v[s > 0] for v, s in zip(single[name], single["decoder_segment_ids"], strict=True)]
        assert [x.tolist() for x in found if len(x)] == [x.tolist() for x in expected if len(x)]
        assert not values[ids == 0].any()
