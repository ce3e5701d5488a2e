"""The loss of a batch is that of transformers for the same tokens, whatever the padding."""

import jax
import numpy as np
import pytest

from t2t.data import features
from t2t.hf import export
from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.vocabulary.frame import Frame
from tests.hf import tiny

pytestmark = pytest.mark.hf

IGNORED = -100  # transformers' label of a position without loss
PAIRS = [{"inputs": [5, 9, 3, 1], "targets": [7, 4, 1]}, {"inputs": [8, 1], "targets": [2, 6, 3, 9, 1]}]
MASKED = [
    {"inputs": [2, 4, 6, 4, 3], "targets": [2, 9, 6, 7, 3], "weights": [0, 1, 0, 1, 0]},
    {"inputs": [2, 8, 3], "targets": [2, 5, 3], "weights": [0, 1, 0]},
]


def rows(examples):
    return [[{name: np.array(values, np.int32) for name, values in example.items()}] for example in examples]


def labelled(tokens, weights):
    return np.where(weights > 0, tokens, IGNORED)


def sequence_to_sequence(batch):
    return {
        "input_ids": batch["encoder_input_tokens"],
        "attention_mask": batch["encoder_segment_ids"],
        "labels": labelled(batch["decoder_target_tokens"], batch["decoder_loss_weights"]),
    }


def causal(batch):
    """transformers shifts by itself: the token at a position is what the one before it shall predict."""
    inputs, targets = batch["decoder_input_tokens"], batch["decoder_target_tokens"]
    labels = np.pad(labelled(targets, batch["decoder_loss_weights"]), ((0, 0), (1, 0)), constant_values=IGNORED)
    attended = np.pad(batch["decoder_segment_ids"], ((0, 0), (1, 0)), constant_values=1)
    return {
        "input_ids": np.concatenate([inputs[:, :1], targets], 1), "attention_mask": attended, "labels": labels,
    }  # fmt: skip


def masked(batch):
    return {
        "input_ids": batch["encoder_input_tokens"],
        "attention_mask": batch["encoder_segment_ids"],
        "labels": labelled(batch["encoder_target_tokens"], batch["encoder_loss_weights"]),
    }


TARGETS = [[8, 9, 4, 2], [7, 2], [2]]  # of which transformers fills the rest with IGNORED
LANGUAGE = 5
SHIFTS = {"t5": 0, "mt5": 0, "umt5": 0, "bart": 2, "mbart": LANGUAGE}


@pytest.mark.parametrize("model_type", SHIFTS)
def test_the_decoder_reads_what_transformers_makes_of_labels(model_type):
    """BART's starts with the end token, mBART's with the code of the language.

    Where nothing is to be predicted, theirs goes on with the last token, and padding in the place of -100.
    """
    import torch
    import transformers

    start, pad = SHIFTS[model_type], 0 if model_type.endswith("t5") else 1
    targets = [[*row, LANGUAGE] for row in TARGETS] if model_type == "mbart" else TARGETS
    converter = features.EncoderDecoderFeatures(
        lengths={"inputs": 2, "targets": 6}, start_id=start, pad_id=pad, eos_id=2,
        frame=Frame(eos_id=2, language_ids=frozenset({LANGUAGE})) if model_type == "mbart" else Frame(),
    )  # fmt: skip
    batch = converter.convert(rows([{"inputs": [3], "targets": row} for row in targets]))
    labels = torch.tensor([row + [IGNORED] * (6 - len(row)) for row in targets])
    config = transformers.CONFIG_MAPPING[model_type](decoder_start_token_id=start, pad_token_id=pad)
    if model_type.endswith("t5"):
        holder = type("Holder", (), {"config": config})()
        name = transformers.models.auto.modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING[type(config)]
        theirs = name._shift_right(holder, labels)
    else:
        module = getattr(transformers.models, model_type)
        shift = getattr(module, f"modeling_{model_type}").shift_tokens_right
        theirs = shift(labels, pad, *([start] if model_type == "bart" else []))
    is_real = batch["decoder_loss_weights"] > 0
    np.testing.assert_array_equal(batch["decoder_input_tokens"][is_real], theirs.numpy()[is_real])
    assert set(batch["decoder_input_tokens"][~is_real]) == {pad}
    np.testing.assert_array_equal(np.where(is_real, batch["decoder_target_tokens"], IGNORED), labels)


@pytest.mark.parametrize(
    ("config", "name", "objective", "converter", "examples", "theirs"),
    [
        (
            tiny.T5, "T5ForConditionalGeneration", LanguageModeling(),
            features.EncoderDecoderFeatures(lengths={"inputs": 6, "targets": 7}, start_id=0, eos_id=1), PAIRS,
            sequence_to_sequence,
        ),
        (
            tiny.GPT2, "GPT2LMHeadModel", LanguageModeling(),
            features.DecoderFeatures(lengths={"inputs": 4, "targets": 4}, start_id=10, eos_id=1), PAIRS, causal,
        ),
        (
            tiny.MASKED, "BertForMaskedLM", MaskedLanguageModeling(),
            features.EncoderFeatures(lengths={"inputs": 7}), MASKED, masked,
        ),
    ],
    ids=["t5", "gpt2", "bert"],
)  # fmt: skip
def test_the_loss_is_theirs(tmp_path, config, name, objective, converter, examples, theirs):
    import torch
    import transformers

    params = tiny.params(config)
    export.export(tmp_path, config=config, params=params)
    model = getattr(transformers, name).from_pretrained(tmp_path, attn_implementation="eager").eval()
    batch = converter.convert(rows(examples))
    with torch.no_grad():
        expected = float(model(**{key: torch.tensor(value).long() for key, value in theirs(batch).items()}).loss)
    models = {"model": Network(config)}
    terms, _, _ = jax.jit(lambda p: objective.loss(models, {"model": p}, batch, key=None, carry=()))(params)
    term = terms["cross_entropy"]
    np.testing.assert_allclose(term.sum / term.weight, expected, rtol=1e-5)
    assert term.weight == objective.weights(batch)["cross_entropy"]
