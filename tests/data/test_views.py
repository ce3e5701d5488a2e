"""What people see of a row: marks by rules written out, masks as 0/1 matrices."""

import numpy as np
import pytest

from t2t.data import features, views
from t2t.data.layout import Example
from t2t.data.permutation_features import PermutationFeatures
from t2t.data.views import Mark
from t2t.data.vocabularies import SpecialTokens

PAD, EOS, MASK, BOS, MODE, S1, S0 = 0, 1, 2, 3, 4, 18, 19
SPECIAL = SpecialTokens(
    size=20,
    bos_id=BOS,
    eos_id=EOS,
    mask_id=MASK,
    sentinels=(S0, S1),
    special_ids=(PAD, EOS, MASK, BOS, MODE, S1, S0),
    modes={"[NLU]": MODE},
)
LETTERS = {
    Mark.PADDING: "_", Mark.TEXT: "t", Mark.SPECIAL: "s", Mark.SENTINEL: "x", Mark.MODE: "m", Mark.MASKED: "M",
    Mark.REPLACED: "R", Mark.KEPT: "K", Mark.PREDICTED: "P",
}  # fmt: skip


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def marks(strip: views.Strip) -> str:
    return "".join(LETTERS[Mark(mark)] for mark in strip.marks)


def look(converter: features.Converter, *examples: Example) -> tuple[dict[str, views.Strip], dict[str, list]]:
    batch = converter.convert([list(examples)])
    strips = {strip.name: strip for strip in views.strips(batch, 0, SPECIAL)}
    return strips, {name: mask.astype(int).tolist() for name, mask in views.attention(batch, 0).items()}


def test_masked_language_modelling():
    """[CLS] a b c d e [SEP], of which b is masked, c replaced and d kept; then a text that holds a mask itself."""
    converter = features.EncoderFeatures(lengths={"inputs": 12, "targets": 12}, pad_id=PAD)
    first = {
        "inputs": ids(BOS, 5, MASK, 9, 8, 6, EOS),
        "targets": ids(BOS, 5, 7, 10, 8, 6, EOS),
        "weights": ids(0, 0, 1, 1, 1, 0, 0),
    }
    second = {"inputs": ids(MASK, 7), "targets": ids(MASK, 7), "weights": ids(0, 1)}
    strips, attention = look(converter, first, second)
    assert list(strips) == ["encoder inputs", "encoder targets"]
    assert marks(strips["encoder inputs"]) == "stMRKtssK___"
    assert marks(strips["encoder targets"]) == "stttttsMt___"
    assert strips["encoder inputs"].segments.tolist() == [1] * 7 + [2] * 2 + [0] * 3
    assert strips["encoder inputs"].weights.tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    same = np.array([1] * 7 + [2] * 2)
    assert attention == {"encoder": (same[:, None] == same).astype(int).tolist()}


def test_span_corruption():
    converter = features.EncoderDecoderFeatures(lengths={"inputs": 6, "targets": 7}, start_id=PAD)
    strips, attention = look(
        converter,
        {"inputs": ids(MODE, 5, S0, 7, EOS), "targets": ids(S0, 6, S1, EOS)},
        {"inputs": ids(9), "targets": ids(9)},
    )
    assert list(strips) == ["encoder inputs", "decoder inputs", "decoder targets"]
    assert marks(strips["encoder inputs"]) == "mtxtst"
    assert marks(strips["decoder targets"]) == "xtxst__"
    assert strips["decoder targets"].weights.tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert strips["decoder inputs"].weights is None
    assert attention["decoder"] == [
        [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1],
    ]  # fmt: skip
    assert attention["decoder reading encoder"] == [[1, 1, 1, 1, 1, 0]] * 4 + [[0, 0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("inputs", "targets", "expected"),
    [
        ((5, MASK, 9, 8, EOS), (5, 6, 7, 8, EOS), "tMRts"),  # BERT's style: the targets are the text
        ((6, 5, 7, 8, EOS), (5, 6, 7, 8, EOS), "tttts"),  # a permutation
        ((5, 9, 9, 9, EOS), (5, 6, 7, 8, EOS), "tttts"),  # two texts of equal length
        ((5, 6, 7, EOS), (5, 6, 7, 8, EOS), "ttts"),
    ],
)
def test_replaced_tokens_before_a_decoder(inputs, targets, expected):
    converter = features.EncoderDecoderFeatures(lengths={"inputs": 5, "targets": 5}, start_id=PAD)
    strips, _ = look(converter, {"inputs": ids(*inputs), "targets": ids(*targets)})
    assert marks(strips["encoder inputs"]).rstrip("_") == expected


def test_prefix_language_models():
    converter = features.PrefixLMFeatures(lengths={"inputs": 3, "targets": 3}, start_id=PAD)
    strips, attention = look(converter, {"inputs": ids(5, 6), "targets": ids(7, EOS)})
    assert marks(strips["decoder targets"]) == "ttts__"
    assert strips["decoder targets"].weights.tolist() == [0, 0, 1, 1, 0, 0]
    assert attention == {"decoder": [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]}


def test_permutation_language_models():
    """Of four tokens the third is predicted first, then the second; who reads whom by the order."""
    example = {
        "inputs": ids(5, 6, 7, 8),
        "targets": ids(5, 6, 7, 8),
        "weights": ids(0, 1, 1, 0),
        "order": ids(-1, 2, 0, -1),
        "token_types": ids(0, 0, 0, 0),
    }
    strips, attention = look(PermutationFeatures(lengths={"inputs": 5, "targets": 5}, predictions=2), example)
    assert marks(strips["encoder inputs"]) == "tPPt_"
    assert attention["query stream"] == [[1, 0, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1]]
    assert attention["content stream"] == [[1, 0, 0, 1], [1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1]]


def test_an_empty_row_shows_nothing():
    converter = features.EncoderDecoderFeatures(lengths={"inputs": 2, "targets": 2}, start_id=PAD)
    strips, attention = look(converter)
    assert marks(strips["encoder inputs"]) == "__"
    assert attention == {"encoder": [], "decoder": [], "decoder reading encoder": []}


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (8, 12), (1, 9)])
def test_shrinking(shape):
    mask = np.random.default_rng(0).random(shape) < 0.5
    small = views.shrink(mask, 4)
    step = -(-max(shape) // 4)
    assert small.shape == (-(-shape[0] // step), -(-shape[1] // step))
    for i, row in enumerate(small):
        for j, value in enumerate(row):
            block = mask[i * step : (i + 1) * step, j * step : (j + 1) * step]
            assert value == (block.mean() >= 0.5)
    assert views.shrink(mask, max(shape)) is mask
