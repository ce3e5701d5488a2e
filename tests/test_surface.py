"""The names that `import t2t` promises, each loaded when it is first used."""

import importlib

import pytest

import t2t


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
    from t2t import api
    from t2t.train import loop

    calls = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loop, "train", lambda experiment, directory: calls.append((experiment.name, str(directory))))
    monkeypatch.setattr(api, "load", lambda directory: f"model of {directory}")
    experiment = type("Experiment", (), {"name": "small"})()
    assert t2t.train(experiment) == "model of runs/small"
    assert t2t.train(experiment, tmp_path / "here") == f"model of {tmp_path / 'here'}"
    assert calls == [("small", "runs/small"), ("small", str(tmp_path / "here"))]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module t2t has no attribute trian"):
        _ = t2t.trian
