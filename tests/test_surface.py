"""The names that `import t2t` promises, each loaded when it is first used."""

import importlib
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import t2t
from t2t import heads
from t2t.families import t5
from t2t.hf import export
from t2t.vocabulary import ByteVocabulary
from tests.hf import tiny


def test_every_promised_name_is_there():
    for name in t2t.__all__:
        assert getattr(t2t, name) is not None
        assert name in dir(t2t)


def test_presets_are_configs_with_exact_counts():
    assert "t5-small" in t2t.presets()
    assert t2t.count_parameters(t2t.preset("t5-small")) == 60_506_624


def test_train_is_a_function_and_a_package():
    step = importlib.import_module("t2t.train.step")
    assert t2t.train.step is step
    assert callable(t2t.train)


def test_train_returns_the_model_of_the_run(tmp_path, monkeypatch):
    from t2t import opening
    from t2t.train import loop

    calls = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loop, "train", lambda experiment, directory: calls.append((experiment.name, str(directory))))
    monkeypatch.setattr(opening, "load", lambda directory: f"model of {directory}")
    experiment = type("Experiment", (), {"name": "small"})()
    assert t2t.train(experiment) == "model of runs/small"
    assert t2t.train(experiment, tmp_path / "here") == f"model of {tmp_path / 'here'}"
    assert calls == [("small", "runs/small"), ("small", str(tmp_path / "here"))]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module t2t has no attribute trian"):
        _ = t2t.trian


@pytest.mark.slow
def test_fresh_models_depend_on_the_seed_alone():
    one, same, other = t2t.init(tiny.T5_1_1), t2t.init(tiny.T5_1_1, seed=0), t2t.init(tiny.T5_1_1, seed=1)
    tiny.assert_trees_equal(one.params, same.params)
    paths = jax.tree_util.tree_leaves_with_path(one.params)
    equal = {path[-1].key for (path, a), b in zip(paths, jax.tree.leaves(other.params), strict=True) if (a == b).any()}
    assert equal == {"scale"}  # of norms, which begin at one
    assert jax.tree.structure(one.params) == jax.tree.structure(tiny.params(tiny.T5_1_1))


@pytest.fixture
def exported(tmp_path):
    """A function that exports a tiny model by its name."""

    def make(name: str):
        export.export(tmp_path / name, config=tiny.ALL[name], params=tiny.params(tiny.ALL[name]))
        return tmp_path / name

    return make


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("bert", heads.MaskedLM(), "masked"),
        ("bert", heads.PRETRAINING, "pretraining"),
        ("pretraining", heads.MaskedLM(), "masked"),
        ("gpt2", heads.PRETRAINING, "gpt2"),
        ("gpt", heads.PRETRAINING, "gpt"),
        ("t5", heads.PRETRAINING, "t5"),
    ],
)
def test_load_gives_a_model_the_head_asked_for(exported, name, head, expected):
    model = t2t.load(exported(name), head=head)
    assert model.config == tiny.ALL[expected]
    assert jax.tree.structure(model.params) == jax.tree.structure(tiny.params(tiny.ALL[expected]))
    table = tiny.params(tiny.ALL[name])["embed"]["embedding"]
    np.testing.assert_array_equal(model.params["embed"]["embedding"], table)


@pytest.mark.parametrize("name", ["gpt2", "gpt", "t5"])
def test_a_head_that_a_family_lacks_is_refused(exported, name):
    with pytest.raises(ValueError, match=r"has no head MaskedLM\(\); possible are None and PRETRAINING"):
        t2t.load(exported(name), head=heads.MaskedLM())


def test_a_run_keeps_its_head(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"t2t": "0.1.0", "experiment": {}}))
    with pytest.raises(ValueError, match="leave out head, or export it first"):
        t2t.load(tmp_path, head=heads.MaskedLM())


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"no {name} in this test", name=name)

sys.meta_path.insert(0, Missing())
import t2t
model = t2t.load(sys.argv[1])
print(model.generate(["one"], max_tokens=3), model.score([("one", "two")]))
model.export(sys.argv[2])
print([name for name in ("tensorflow", "seqio", "torch", "transformers") if name in sys.modules])
"""


@pytest.mark.slow
def test_a_model_is_used_without_tensorflow_torch_and_transformers(tmp_path):
    small = t5.t5(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=384)
    export.export(tmp_path / "one", config=small, params=tiny.params(small), vocabulary=ByteVocabulary())
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "one"), str(tmp_path / "two")]
    environment = os.environ | {"XLA_FLAGS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert first == second
