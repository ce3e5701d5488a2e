import dataclasses

import jax.numpy as jnp
import pytest

from t2t.functional.kernels import choice
from t2t.functional.kernels.choice import Choice, Request
from t2t.functional.masks import Mask

PLAIN = Request(length=512, key_length=512, head_dim=64, dtype="bfloat16")
IDS = jnp.ones((1, 512), jnp.int32)
PACKED = Mask(reader=IDS, read=IDS)


@pytest.mark.parametrize(
    ("change", "able"),
    [
        ({}, "splash flash cudnn triton"),
        ({"rules": PACKED}, "splash flash cudnn triton"),
        ({"rules": Mask(causal=True)}, "splash flash cudnn triton"),
        ({"rules": Mask(window=8)}, "splash cudnn"),
        ({"rules": Mask(causal=True, prefix=IDS)}, "cudnn"),
        ({"rules": None}, ""),
        ({"bias": True}, "flash cudnn"),
        ({"dropout": 0.1}, ""),
        ({"weights": True}, ""),
        ({"own_scores": True}, ""),
        ({"split_length": True}, ""),
        ({"key_length": 384}, "splash flash cudnn"),
        ({"dtype": "float32"}, "splash flash triton"),
        ({"head_dim": 80}, "splash flash cudnn triton"),
        ({"head_dim": 100}, "splash flash triton"),
        ({"head_dim": 192}, "splash triton"),
        ({"length": 511, "key_length": 511}, "splash flash cudnn triton"),
        ({"length": 511, "key_length": 511, "bias": True}, "flash"),
    ],
)
def test_what_each_kernel_honours(change, able):
    request = dataclasses.replace(PLAIN, **change)
    found = [kernel for kernel in choice.KERNELS if choice.refusal(kernel, request) is None]
    assert found == ["reference", *able.split()]


def test_the_first_that_can_is_taken_and_the_rest_is_recorded():
    with choice.recording() as choices:
        request = dataclasses.replace(PLAIN, bias=True)
        assert choice.choose(("splash", "flash", "reference"), request, layer="a") == "flash"
        assert choice.choose(("splash", "flash", "reference"), dataclasses.replace(request, dropout=0.1)) == "reference"
    choice.choose(("reference",), PLAIN)  # outside: nobody listens
    assert choices[0] == Choice("a", "flash", (("splash", "cannot add a bias"),))
    assert [kernel for kernel, _ in choices[1].refused] == ["splash", "flash"]


def test_short_rows_are_left_to_the_reference_unless_a_kernel_is_asked_for():
    request = dataclasses.replace(PLAIN, length=100, key_length=255)
    assert choice.choose(("splash", "reference"), request) == "reference"
    assert choice.choose(("splash", "reference"), dataclasses.replace(request, key_length=256)) == "splash"
    assert choice.choose(("splash",), request) == "splash"


def test_an_error_says_why_and_what_can():
    request = dataclasses.replace(PLAIN, rules=Mask(causal=True, prefix=IDS), dropout=0.0)
    with pytest.raises(ValueError, match="x/y .*splash cannot read a prefix.* What can: reference, cudnn"):
        choice.choose(("splash",), request, layer="x/y")
    with pytest.raises(ValueError, match=r"AttentionConfig.dropout = 0.1"):
        choice.check("triton", dataclasses.replace(PLAIN, dropout=0.1))


def test_settings():
    assert choice.of_setting("auto", platform="cpu") == ("reference",)
    assert choice.of_setting("auto", platform="gpu") == ("cudnn", "triton", "reference")
    assert choice.of_setting("splash", platform="tpu") == ("splash",)
    assert choice.of_setting("reference", platform="gpu") == ("reference",)
    with pytest.raises(ValueError, match="runs on a TPU, and this is a CPU: possible are reference, and auto"):
        choice.of_setting("splash", platform="cpu")


def test_one_line_about_choices():
    because = (("splash", "cannot add a bias"),)
    choices = [
        Choice("a", "splash"),
        Choice("b", "flash", because),
        Choice("c", "splash"),
        Choice("b", "flash", because),
    ]
    assert choice.described(choices) == "splash in a, c; flash in b (splash cannot add a bias)"
