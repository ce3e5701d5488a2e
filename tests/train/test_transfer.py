"""Two trees of parameters side by side: what fits, what does not and why, in lines for people."""

import jax
import jax.numpy as jnp

from t2t.train import transfer


def tree(**shapes):
    return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}


def test_equal_trees_fit():
    fit = transfer.compare(tree(a=(2, 3), b=(4,)), tree(a=(2, 3), b=(4,)))
    assert fit.is_exact and fit.taken == ["a", "b"]
    assert fit.lines() == ["2 taken, 0 fresh, 0 left out"]


def test_heads_need_not_be_in_both_but_fit_where_they_are():
    assert transfer.compare(tree(a=(2,), head=(3,)), tree(a=(2,)), free=("head",)).is_exact
    assert transfer.compare(tree(a=(2,)), tree(a=(2,), head=(3,)), free=("head",)).is_exact
    fit = transfer.compare(tree(a=(2,), head=(3,)), tree(a=(2,), head=(4,)), free=("head",))
    assert fit.misfits() == ["head: (3,) there, (4,) in this model"]


def test_what_does_not_fit_is_told_apart():
    fit = transfer.compare(tree(a=(2,), b=(3,), c=(4,)), tree(a=(2,), b=(5,), d=(6,)))
    assert fit.misfits() == [
        "d: absent there, (6,) in this model",
        "c: (4,) there, absent in this model",
        "b: (3,) there, (5,) in this model",
    ]
    assert fit.lines() == [
        "1 taken, 2 fresh, 1 left out",
        "~ b: (3,) there, (5,) here: fresh",
        "+ d (6,): not there, fresh",
        "- c (4,): left out",
    ]


def test_long_lists_are_cut():
    many = {f"x{i}": (i,) for i in range(1, 100)}
    lines = transfer.compare(tree(**many), tree(a=(1,))).lines()
    assert len(lines) == 2 + transfer.SHOWN and lines[-1] == "... and 60 more"
